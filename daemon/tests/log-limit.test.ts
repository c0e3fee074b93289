/** What peers can make a server log. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitPeerLines } from '../commands/log-limit.ts';

test('peers fill no log: so many lines of each kind, then their number', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const lines: string[] = [];
  const log = limitPeerLines((event, _peer, detail) => lines.push(`${event} ${detail}`), 3, 10_000);
  for (let n = 0; n < 1000; n++) log('dropped', '10.0.0.1:1', `number ${n}`);
  log('refused', '10.0.0.1:1', 'another kind');
  for (let n = 0; n < 5; n++) log('published', '', 'no peer');
  assert.deepEqual(lines.splice(0), [
    'dropped number 0',
    'dropped number 1',
    'dropped number 2',
    'refused another kind',
    ...Array(5).fill('published no peer'),
  ]);
  t.mock.timers.tick(10_000);
  assert.deepEqual(lines.splice(0), ['dropped 997 more within 10 s, not logged']);
  log('dropped', '10.0.0.1:1', 'again');
  assert.deepEqual(lines, ['dropped again']);
});
