/**
 * A client in a process of its own, for tests that kill it: `PORT PATH` reads that file over RDMA again and again, and says
 * "reading" on standard output with each time that it has it all.
 */
import { openOverRdma } from './verbs-rig.ts';

const [port, path] = process.argv.slice(2);
const { transport } = await openOverRdma(Number(port), { readBytesMax: 64 << 10 });
const file = (await transport.list('')).find((one) => one.path === path);
if (file === undefined) throw new Error(`there is no ${path}`);
const into = new Uint8Array(new SharedArrayBuffer(file.length));
for (;;) {
  await transport.read(file, 0, into);
  console.log('reading');
}
