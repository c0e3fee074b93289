/** The warm-up of mounts: it reads its file in either view, and leaves the memory as it was. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MEMORY_BYTES_MIN, Pool } from '../../decode/index.ts';
import { warmUp } from '../mount/warm-up.ts';
import { ScanEngine } from '../scan/engine.ts';
import { until } from './api-fixture.ts';

test('the raw view reads its file, and the pool is as before', async () => {
  const pool = Pool.create(MEMORY_BYTES_MIN);
  const before = pool.usedBytes;
  const { rounds } = await warmUp({ pool, engine: undefined, view: 'raw' });
  assert.ok(rounds > 0);
  await until(() => pool.usedBytes === before);
});

test('the decoded view decodes it, and the pool is as before', async () => {
  const engine = new ScanEngine({ memoryBytes: MEMORY_BYTES_MIN, decoders: 1 });
  const before = engine.pool.usedBytes;
  const { rounds } = await warmUp({ pool: engine.pool, engine, view: 'decoded' });
  assert.ok(rounds > 0);
  await until(() => engine.pool.usedBytes === before);
  assert.deepEqual(engine.readProfile().encodings, {}, 'nothing of it is counted');
  await engine.close();
});
