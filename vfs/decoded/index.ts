/** What other folders may use of vfs/decoded/. */

export { DECODED_CHUNK_SHARE } from '../limits.ts';
export { CachePusher } from './cache-pusher.ts';
export { ChunkStore } from './chunk-store.ts';
export type { DecodedChunk } from './decoded-chunk.ts';
export { DecodedContent } from './decoded-content.ts';
