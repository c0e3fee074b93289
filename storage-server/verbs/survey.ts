/** What this machine has for RDMA, looked at as a whole: for a person who wants to know what is missing. */
import { openVerbsDevice } from './device.ts';
import { deviceListText, withDeviceList } from './device-list.ts';
import { VerbsError } from './errors.ts';
import { loadVerbsLibrary } from './library.ts';
import { lockLimit } from './locked-memory.ts';
import type { DeviceFacts } from './verbs.ts';

export interface VerbsSurvey {
  /** Why the library can't be used, if it can't. */
  readonly libraryProblem: string | undefined;
  readonly devices: ReadonlyArray<{ readonly name: string; readonly facts?: DeviceFacts; readonly problem?: string }>;
  /** Why there is none, if there is none. */
  readonly devicesProblem: string | undefined;
  /** Bytes of memory that this process may lock; infinite without a limit. */
  readonly lockBytesMax: number;
}

/** Opens each device for a moment. */
export async function surveyVerbs(): Promise<VerbsSurvey> {
  const lockBytesMax = lockLimit();
  let names: readonly string[];
  try {
    const library = await loadVerbsLibrary();
    names = withDeviceList(library, (devices) => devices.map(({ name }) => name));
  } catch (error) {
    if (!(error instanceof VerbsError)) throw error;
    return { libraryProblem: error.reason, devices: [], devicesProblem: deviceListText([], undefined), lockBytesMax };
  }
  const devices = [];
  for (const name of names) {
    try {
      const device = await openVerbsDevice(name);
      devices.push({ name, facts: device.facts });
      device.close();
    } catch (error) {
      if (!(error instanceof VerbsError)) throw error;
      devices.push({ name, problem: error.reason });
    }
  }
  const devicesProblem = devices.length === 0 ? deviceListText([], undefined) : undefined;
  return { libraryProblem: undefined, devices, devicesProblem, lockBytesMax };
}
