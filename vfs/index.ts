/** What other folders may use of vfs/. */
export { errnoName } from './errno.ts';
export { MountError, type MountErrorCode } from './errors.ts';
export { type Glob, parseGlob } from './glob.ts';
export { type Location, parseLocation } from './location.ts';
export type { OpenTransport, SourceOptions } from './source.ts';
export { openSource, Source } from './source.ts';
export { VirtualFile } from './virtual-file.ts';
