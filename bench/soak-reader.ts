/**
 * Scans of a `qanat daemon` over HTTP. An answer that is refused or cut off counts as STALE only if the daemon says so:
 * in the answer, or, where rows were sent already, in its log, which the run compares with what readers saw.
 */
import { type IncomingMessage, request } from 'node:http';
import { type RecordBatch, RecordBatchReader } from 'apache-arrow';
import { type ScanWish, Stale } from './soak-scans.ts';

/** The batches of one scan. Throws Stale, or another error when the scan was refused. */
export async function* daemonBatches(http: string, wish: ScanWish): AsyncGenerator<RecordBatch> {
  const { path, columns, batchRows } = wish;
  const body = JSON.stringify({ source: 'lake', columns, batchRows, ...(path === undefined ? {} : { path }) });
  const response = await post(`http://${http}/v1/scan`, body);
  try {
    if (response.statusCode !== 200) throw await refusal(response);
    // what is cut off in the middle of a message must not look like the end
    const reader = await RecordBatchReader.from(cutAsStale(response));
    for await (const batch of reader) yield batch;
    if (!response.complete) throw new Error('the Arrow stream has an end that HTTP does not have');
  } finally {
    response.destroy();
  }
}

function post(url: string, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
    const posted = request(url, { method: 'POST', headers, agent: false }, resolve);
    posted.on('error', reject);
    posted.end(body);
  });
}

async function refusal(response: IncomingMessage): Promise<Error> {
  const parts: Buffer[] = [];
  for await (const part of response as AsyncIterable<Buffer>) parts.push(part);
  const text = Buffer.concat(parts).toString();
  const { error } = JSON.parse(text) as { error: { code: string; message: string } };
  return error.code === 'STALE' ? new Stale(error.message) : new Error(`${response.statusCode} ${text}`);
}

async function* cutAsStale(response: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const part of response as AsyncIterable<Buffer>) yield part;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === 'ECONNRESET' ? new Stale('cut off') : error;
  }
}
