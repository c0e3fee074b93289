/** Errors become the numbers that programs can act on. */
import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { test } from 'node:test';
import { DecodeError } from '../../decode/index.ts';
import { FetchError } from '../../fetcher/index.ts';
import { Errno, errnoName, errnoOf } from '../errno.ts';
import { MountError } from '../errors.ts';

const E = constants.errno;

test('what a reader can act on is told apart, the rest is EIO', () => {
  const table = [
    [new FetchError('STALE', ''), E.ESTALE],
    [new FetchError('ACCESS', ''), E.ESTALE],
    [new FetchError('NOT_FOUND', ''), E.ENOENT],
    [new FetchError('STALLED', ''), E.ETIMEDOUT],
    [new FetchError('CANCELLED', ''), E.EINTR],
    [new FetchError('MEMORY', ''), E.ENOMEM],
    [new FetchError('DENIED', ''), E.EACCES],
    [new FetchError('LOST', ''), E.EIO],
    [new FetchError('PROTOCOL', ''), E.EIO],
    [new DecodeError('PAGE', ''), E.EIO],
    [new MountError('STALE', ''), E.ESTALE],
    [new MountError('INTERRUPTED', ''), E.EINTR],
    [new MountError('CROWDED', ''), E.EAGAIN],
    [new MountError('STOPPED', ''), E.ENOTCONN],
    [AbortSignal.abort().reason, E.EINTR],
    [new DOMException('late', 'TimeoutError'), E.ETIMEDOUT],
    [Object.assign(new Error('ESTALE'), { code: 'ENOENT' }), E.EIO],
    ['STALE', E.EIO],
    [null, E.EIO],
    [{ code: 'STALE' }, E.EIO],
  ] as const;
  for (const [error, errno] of table) assert.equal(errnoName(errnoOf(error)), errnoName(errno), String(error));
});

test('numbers have names', () => {
  for (const [name, value] of Object.entries(Errno)) assert.equal(errnoName(value), name);
  assert.equal(errnoName(E.EXDEV), 'EXDEV');
  assert.equal(errnoName(9999), 'errno 9999');
});
