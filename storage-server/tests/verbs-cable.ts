/**
 * The network of the virtual machine that deploy/tests/verbs-vm boots: two Soft-RoCE devices, each on one end of a cable
 * that can be cut, with counters at both. Nothing of it is there elsewhere, so that only `*.vm-test.ts` and benchmarks
 * import it.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** One end of the cable: an RDMA device on a network device with an address. */
export interface CableEnd {
  readonly device: string;
  readonly network: string;
  readonly address: string;
}

export const SERVER_END: CableEnd = { device: 'rxe0', network: 'eth0', address: '10.77.0.1' };
export const CLIENT_END: CableEnd = { device: 'rxe1', network: 'eth1', address: '10.77.0.2' };

/** What one end has counted since the machine started. */
export interface EndCounters {
  /** Packets of the RDMA device. */
  readonly rdmaSent: number;
  readonly rdmaReceived: number;
  /** Requests that the device sent again, and those that it had given up. */
  readonly retries: number;
  readonly givenUp: number;
  /** Bytes of all that the network device sent, of RDMA and of TCP. */
  readonly wireSent: number;
}

/** Reads the counters that the kernel keeps; nobody else writes them. */
export function endCounters({ device, network }: CableEnd): EndCounters {
  const ofDevice = (name: string): number =>
    Number(readFileSync(`/sys/class/infiniband/${device}/ports/1/hw_counters/${name}`, 'utf8'));
  return {
    rdmaSent: ofDevice('sent_pkts'),
    rdmaReceived: ofDevice('rcvd_pkts'),
    retries: ofDevice('completer_retry_err'),
    givenUp: ofDevice('retry_exceeded_err'),
    wireSent: Number(readFileSync(`/sys/class/net/${network}/statistics/tx_bytes`, 'utf8')),
  };
}

/** What is counted while something runs. */
export async function countedDuring(end: CableEnd, run: () => Promise<void>): Promise<EndCounters> {
  const before = endCounters(end);
  await run();
  const after = endCounters(end);
  const names = Object.keys(after) as (keyof EndCounters)[];
  return Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as unknown as EndCounters;
}

/** Takes the server's end of the cable down. */
export function cutCable(): void {
  execFileSync('ip', ['link', 'set', SERVER_END.network, 'down']);
}

/** Puts it in again, with the routes that went with it. */
export function plugCable(): void {
  execFileSync('/run/plug');
}
