/** The options about RDMA, of a server and of clients. */
import { TRANSPORTS } from '../fetcher/index.ts';
import { oneOf, parseDeviceName, parseSwitch } from './argument.ts';

export const RDMA_OPTIONS = {
  transport: {
    argument: 'name',
    choices: TRANSPORTS,
    parse: oneOf(...TRANSPORTS),
    without: 'auto',
    meaning:
      'How bytes of a `qanat serve` come: over RDMA (`verbs`), over TCP (`tcp`), or over RDMA where both ends have a ' +
      'device and over TCP where not (`auto`)',
  },
  rdmaDevice: {
    argument: 'name|auto|none',
    parse: parseDeviceName,
    without: 'serve: none; else auto',
    meaning:
      'RDMA device (`ibv_devices` lists them); `auto` is the first that works. A server that has one keeps all it serves ' +
      'in memory that the device reads by itself, and does not start without one that is named',
  },
  busyPoll: {
    parse: parseSwitch,
    without: 'off',
    meaning: 'Ask the RDMA device for completions all the time: less latency, a whole core while reads are under way',
  },
} as const;
