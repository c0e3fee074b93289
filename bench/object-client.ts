/**
 * Ours of the objects benchmark, in a process of its own; prints JSON.
 *   node object-client.ts scan <endpoint> <url> <gap: auto or bytes> <endpoint before> <url before> <column,column...>
 *       { ms, rows }, after another object was read from elsewhere
 *   node object-client.ts bytes <endpoint> <s3 url> <piece bytes> <passes>     { cpuMs, bytes } of reads in pieces
 *   node object-client.ts undici <endpoint> <bucket/key> <piece bytes> <passes>     the same by plain undici
 */
import { request } from 'undici';
import { openSource, Scan, ScanEngine } from '../daemon/index.ts';

const [what, endpoint, where, ...rest] = process.argv.slice(2) as [string, string, string, ...string[]];

/** Reads in flight, on both sides. */
const AT_ONCE = 4;

const figures = await { scan, bytes, undici: plainUndici }[what as 'scan' | 'bytes' | 'undici']();
console.log(JSON.stringify(figures));
process.exit(0);

function open(endpoint: string, url: string) {
  return openSource(url, { s3: { endpoint, region: 'us-east-1' } });
}

async function scan() {
  const [gap, endpointBefore, urlBefore, columns] = rest as [string, string, string, string];
  const engine = new ScanEngine({ decoders: 1 });
  const maxGap = gap === 'auto' ? gap : Number(gap);
  const read = async (from: string, url: string): Promise<number> => {
    const source = await open(from, url);
    let rows = 0;
    const options = { columns: columns.split(','), maxGap, prefetchDepth: 'auto' } as const;
    for await (const batch of await Scan.open(engine, source, options)) rows += batch.numRows;
    await source.close();
    return rows;
  };
  await read(endpointBefore, urlBefore);
  const began = performance.now();
  const rows = await read(endpoint, where);
  const ms = performance.now() - began;
  await engine.close();
  return { ms, rows };
}

async function bytes() {
  const source = await open(endpoint, where);
  const [file] = await source.list();
  const memory = new SharedArrayBuffer(AT_ONCE * Number(rest[0]));
  const figures = await timed(file!.length, (start, end, slot) =>
    source.transport.read(file!, start, new Uint8Array(memory, slot * Number(rest[0]), end - start)),
  );
  await source.close();
  return figures;
}

async function plainUndici() {
  const url = `${endpoint}/${where}`;
  const head = await request(url, { method: 'HEAD' });
  const length = Number(head.headers['content-length']);
  return timed(length, async (start, end) => {
    const { statusCode, body } = await request(url, { headers: { range: `bytes=${start}-${end - 1}` } });
    const read = await body.arrayBuffer();
    // rclone says 200 and gives the range
    if (statusCode > 206 || read.byteLength !== end - start)
      throw new Error(`status ${statusCode}, ${read.byteLength} bytes`);
  });
}

/** Reads [0, length) in pieces, several at once, again and again; the first pass only compiles what runs. */
async function timed(length: number, read: (start: number, end: number, slot: number) => Promise<void>) {
  const [piece, passes] = rest.map(Number) as [number, number];
  let cpu = process.cpuUsage();
  for (let pass = 0; pass <= passes; pass++) {
    if (pass === 1) cpu = process.cpuUsage();
    let next = 0;
    const worker = async (slot: number): Promise<void> => {
      while (next < length) {
        const start = next;
        next = Math.min(length, start + piece);
        await read(start, next, slot);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, (_, slot) => worker(slot)));
  }
  const { user, system } = process.cpuUsage(cpu);
  return { cpuMs: (user + system) / 1000, bytes: length * passes };
}
