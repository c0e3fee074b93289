/**
 * RDMA for both ends, through the system's libibverbs: opened when first asked for, and with words for people when there
 * is none. Knows queue pairs, memory and devices, nothing of regions and files.
 */
export { openVerbsDevice } from './device.ts';
export { VerbsError, type VerbsErrorCode } from './errors.ts';
export { surveyVerbs, type VerbsSurvey } from './survey.ts';
export type {
  DeviceFacts,
  NativeMemory,
  OnCompletion,
  OpenVerbsDevice,
  Registration,
  RemoteRead,
  VerbsDevice,
  VerbsQueuePair,
} from './verbs.ts';
