/** Making texts of rows does not keep the event loop for a whole batch: sockets and the metrics endpoint live there. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSource } from '../../vfs/index.ts';
import { ChecksumSink } from '../output/checksum.ts';
import { csvFormat } from '../output/csv.ts';
import { WORK_SLICE_MS } from '../output/limits.ts';
import type { Output } from '../output/output.ts';
import { LineSink } from '../output/row-text.ts';
import { Turns } from '../output/turns.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Scan } from '../scan/scan.ts';
import { Lake, numbersQuery } from './lake.ts';

const ROWS = 120_000;

function work(milliseconds: number): void {
  const until = performance.now() + milliseconds;
  while (performance.now() < until);
}

/** Counts turns of the event loop while `act` is under way. */
async function turnsDuring(act: () => Promise<void>): Promise<number> {
  let turns = 0;
  let goesOn = true;
  const count = (): void => {
    turns++;
    if (goesOn) setImmediate(count);
  };
  setImmediate(count);
  await act();
  goesOn = false;
  return turns;
}

test('a turn is given when a slice of work is over', async () => {
  const turns = new Turns();
  const given = await turnsDuring(async () => {
    for (let k = 0; k < 5; k++) {
      work(WORK_SLICE_MS + 1);
      await turns.give();
    }
  });
  assert.ok(given >= 5, `${given} turns`);
});

describe('sinks', () => {
  let lake: Lake;
  let engine: ScanEngine;
  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(ROWS), `row_group_size ${ROWS}`);
    engine = new ScanEngine({ decoders: 1 });
  });
  after(async () => {
    await engine.close();
    await lake[Symbol.asyncDispose]();
  });

  const nowhere = { write: async () => {} } as unknown as Output;
  const sinks = {
    csv: (scan: Scan) => new LineSink(engine.pool, scan.fields, csvFormat(scan.fields), nowhere),
    checksum: (scan: Scan) => new ChecksumSink(engine.pool, scan.fields),
  };
  for (const [name, make] of Object.entries(sinks)) {
    test(`${name}: one large batch takes several turns`, async () => {
      const source = await openSource(lake.path('numbers.parquet'));
      const scan = await Scan.open(engine, source, { batchRows: ROWS });
      const batch = await scan.nextBatch();
      assert.ok(batch!.rows > ROWS / 2);
      const sink = make(scan);
      await sink.begin();
      const turns = await turnsDuring(() => sink.write(batch!));
      batch!.release();
      await scan.close();
      await source.close();
      assert.ok(turns >= 2, `${turns} turns`);
    });
  }
});
