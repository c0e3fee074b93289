/**
 * Every file of the corpus over RDMA: the bytes are those on disk, and a scan has the rows, nulls and checksums, or the
 * error, that one over TCP has. Scans take turns with the time that there is (QANAT_CORPUS_SECONDS, 30), in an order of
 * chance; how many files were scanned is told.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { defaultCorpusFolder, MEMORY_BYTES, readCorpus } from '../../bench/corpus-files.ts';
import { seededRandom } from '../../fetcher/tests/random.ts';
import { openOverRdma, serveOverRdma } from '../../fetcher/tests/verbs-rig.ts';
import { CLIENT_END, countedDuring, SERVER_END } from '../../storage-server/tests/verbs-cable.ts';
import { openSource, Scan, ScanEngine, type Source } from '../index.ts';
import { ChecksumSink } from '../output/checksum.ts';

const SECONDS = Number(process.env.QANAT_CORPUS_SECONDS ?? 30);

const corpus = readCorpus(defaultCorpusFolder()) ?? [];
const skip = corpus.length === 0 ? 'there is no corpus: QANAT_CORPUS names none' : false;

const folder = join(defaultCorpusFolder(), 'files');

/** What a scan of a file comes to: its checksums, or its error. */
async function scanned(engine: ScanEngine, source: Source): Promise<string> {
  try {
    const scan = await Scan.open(engine, source, {});
    try {
      const sink = new ChecksumSink(engine.pool, scan.fields);
      for (let batch = await scan.nextBatch(); batch !== undefined; batch = await scan.nextBatch()) {
        await sink.write(batch);
        batch.release();
      }
      return JSON.stringify(sink.checksums());
    } finally {
      await scan.close();
    }
  } catch (error) {
    return String(error);
  }
}

test('the bytes of every file are those on disk', { skip }, async (t) => {
  const server = await serveOverRdma(t, folder);
  const { transport } = await openOverRdma(server.address().port);
  t.after(() => transport.close());
  const files = await transport.list('');
  assert.equal(files.length, new Set(corpus.map(({ path }) => path)).size);
  const memory = new Uint8Array(new SharedArrayBuffer(64 << 20));
  let bytes = 0;
  const counted = await countedDuring(SERVER_END, async () => {
    for (const file of files) {
      const into = memory.subarray(0, file.length);
      await transport.read(file, 0, into);
      assert.ok(readFileSync(join(folder, file.path)).equals(into), file.path);
      bytes += file.length;
    }
  });
  console.log(`# ${files.length} files, ${bytes} bytes; ${JSON.stringify(counted)}`);
  assert.ok(counted.rdmaSent * 4096 >= bytes);
});

test('scans have the values, or the errors, of scans over TCP', { skip }, async (t) => {
  const server = await serveOverRdma(t, folder);
  const base = `rdma://${SERVER_END.address}:${server.address().port}/`;
  const engine = new ScanEngine({ memoryBytes: MEMORY_BYTES, decoders: 1 });
  t.after(() => engine.close());
  // as long as somebody has the device open the engine's pool stays registered with it
  const keeper = await openOverRdma(server.address().port);
  t.after(() => keeper.transport.close());
  await keeper.transport.list('');
  const random = seededRandom();
  const waiting = [...new Set(corpus.map(({ path }) => basename(path)))];
  const all = waiting.length;
  const until = performance.now() + SECONDS * 1000;
  let values = 0;
  while (waiting.length > 0 && performance.now() < until) {
    const at = random.below(waiting.length);
    const name = waiting[at]!;
    waiting[at] = waiting.at(-1)!;
    waiting.pop();
    const over = async (transport: 'verbs' | 'tcp'): Promise<string> => {
      const source = await openSource(`${base}${name}`, { rdma: { transport, device: CLIENT_END.device } });
      try {
        return (await scanned(engine, source)).replaceAll(base, '');
      } finally {
        await source.close();
      }
    };
    const rdma = await over('verbs');
    assert.equal(rdma, await over('tcp'), name);
    if (rdma.startsWith('[')) values++;
  }
  console.log(
    `# ${all - waiting.length} of ${all} files scanned over both, ${values} with values, the others with the same error`,
  );
  assert.ok(values > 0);
});
