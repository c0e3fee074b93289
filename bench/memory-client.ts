/** Scans a source to Arrow batches as a user's program would, and says how much memory the process took at most. */
import { readFileSync } from 'node:fs';
import { openSource, Scan, ScanEngine } from '../daemon/index.ts';
import { answerQuestions } from './peer-process.ts';

export interface MemoryQuestion {
  readonly url: string;
  readonly memoryBytes: number;
}

export interface MemoryFigures {
  readonly rows: number;
  /** Sum over all batches of the bytes of their Arrow buffers. */
  readonly arrowBytes: number;
  readonly wallMs: number;
  readonly poolPeakBytes: number;
  /** Of the whole process since it started. */
  readonly rssPeakBytes: number;
  /** Sums of a few columns, to be compared with another reader's. */
  readonly orderKeySum: bigint;
}

answerQuestions<MemoryQuestion>(async ({ url, memoryBytes }): Promise<MemoryFigures> => {
  const engine = new ScanEngine({ memoryBytes });
  const source = await openSource(url);
  const began = performance.now();
  const scan = await Scan.open(engine, source);
  let rows = 0;
  let arrowBytes = 0;
  let orderKeySum = 0n;
  for await (const batch of scan) {
    rows += batch.numRows;
    arrowBytes += batch.data.byteLength;
    for (const key of batch.getChild('l_orderkey')!.data[0]!.values as BigInt64Array) orderKeySum += key;
  }
  const wallMs = performance.now() - began;
  const { peakMemoryBytes } = scan.report();
  await source.close();
  await engine.close();
  return { rows, arrowBytes, wallMs, poolPeakBytes: peakMemoryBytes, rssPeakBytes: rssPeakBytes(), orderKeySum };
});

function rssPeakBytes(): number {
  const kilobytes = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  if (kilobytes === undefined) throw new Error('/proc/self/status has no VmHWM');
  return Number(kilobytes) * 1024;
}
