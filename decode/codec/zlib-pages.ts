/**
 * gzip, brotli and zstd pages by engines that each thread keeps, one of each codec. An engine that failed is given up.
 * What they hold between pages is bounded: a zstd frame that wants a large window gets an engine for itself.
 */
import { constants, createBrotliDecompress, createGunzip, createZstdDecompress } from 'node:zlib';
import { Codec } from '../format/enums.ts';
import { ZSTD_FRAMES_MAX, ZSTD_WINDOW_LOG_KEPT } from '../limits.ts';
import { ZlibEngine } from './zlib-engine.ts';

type OpenEngine = () => ZlibEngine | undefined;

/** Bytes: the smallest that zlib objects allow; their own buffer is not used. */
const CHUNK = { chunkSize: 64 };
const OPEN: Partial<Record<number, OpenEngine>> = {
  [Codec.GZIP]: () => ZlibEngine.open(createGunzip(CHUNK), constants.Z_FINISH),
  [Codec.BROTLI]: () => ZlibEngine.open(createBrotliDecompress(CHUNK), constants.BROTLI_OPERATION_FINISH),
  [Codec.ZSTD]: () => openZstd({ [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_KEPT }),
};
const openZstd = (params: Record<number, number>): ZlibEngine | undefined =>
  ZlibEngine.open(createZstdDecompress({ ...CHUNK, params }), constants.ZSTD_e_end);

/** This thread's. Undefined as a value: there is no such engine in this Node. */
const engines = new Map<number, ZlibEngine | undefined>();

/** Where bytes go that there should not be. */
const SPILL = new Uint8Array(64);

/**
 * Decompresses a page into `target` and returns how many bytes that made; undefined when this Node has no engine for
 * it. Throws errors of any kind, also when there is more than the target holds.
 */
export function decompressPage(codec: number, source: Uint8Array, target: Uint8Array): number | undefined {
  if (!engines.has(codec)) engines.set(codec, OPEN[codec]?.());
  const engine = engines.get(codec);
  if (engine === undefined) return undefined;
  try {
    return codec === Codec.ZSTD ? decompressFrames(engine, source, target) : decompressStream(engine, source, target);
  } catch (error) {
    engine.close();
    engines.delete(codec);
    if (!isWindowTooLarge(error)) throw error;
    return decompressLargeWindow(source, target);
  }
}

/** gzip, whose members the library puts one after the other, and brotli. */
function decompressStream(engine: ZlibEngine, source: Uint8Array, target: Uint8Array): number {
  engine.reset();
  let [used, made] = [0, 0];
  for (;;) {
    const step = writeOn(engine, source, used, target, made);
    used += step.used;
    made += step.made;
    // with room to spare the library has nothing more to give, or has said that the input ends too early
    if (step.room > 0) return made;
  }
}

/** A page may be several frames (RFC 8878, section 3); a write ends with a frame, and the next begins another. */
function decompressFrames(engine: ZlibEngine, source: Uint8Array, target: Uint8Array): number {
  let [used, made] = [0, 0];
  for (let frames = 0; used < source.length || frames === 0; frames++) {
    if (frames === ZSTD_FRAMES_MAX) throw new Error(`more than ${ZSTD_FRAMES_MAX} frames`);
    const step = writeOn(engine, source, used, target, made);
    used += step.used;
    made += step.made;
    if (step.used === 0 && step.made === 0) throw new Error('no frame');
  }
  checkFrameEnd(engine);
  return made;
}

function writeOn(
  engine: ZlibEngine,
  source: Uint8Array,
  used: number,
  target: Uint8Array,
  made: number,
): ReturnType<ZlibEngine['write']> {
  if (made < target.length) return engine.write(source, used, target, made);
  const step = engine.write(source, used, SPILL, 0);
  if (step.made > 0) throw new Error(`there are more than ${made} bytes`);
  return step;
}

const LAST_BYTES = Uint8Array.from({ length: 16 }, (_, k) => 0xb1 ^ (k * 29));
/** A frame of these bytes as they are: magic number, one segment of 16 bytes, the last block, raw. */
const LAST_FRAME = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x20, 16, (16 << 3) | 1, 0, 0, ...LAST_BYTES);

/**
 * The library does not tell whether it is at the end of a frame. Only there does another frame come out as it went in;
 * after it the engine is ready for the next page.
 */
function checkFrameEnd(engine: ZlibEngine): void {
  const { used, made } = engine.write(LAST_FRAME, 0, SPILL, 0);
  const isSame = used === LAST_FRAME.length && made === LAST_BYTES.length;
  if (!isSame || LAST_BYTES.some((byte, k) => SPILL[k] !== byte)) throw new Error('the last frame does not end');
}

function isWindowTooLarge(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ZSTD_error_frameParameter_windowTooLarge';
}

/** With the library's own limit, by an engine that keeps no memory. */
function decompressLargeWindow(source: Uint8Array, target: Uint8Array): number | undefined {
  const engine = openZstd({});
  if (engine === undefined) return undefined;
  try {
    return decompressFrames(engine, source, target);
  } finally {
    engine.close();
  }
}
