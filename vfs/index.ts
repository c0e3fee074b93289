/** What other folders may use of vfs/. */
export type { Glob } from './glob.ts';
export type { Location } from './location.ts';
export type { OpenTransport, SourceOptions } from './source.ts';
export { openSource, Source } from './source.ts';
export { VirtualFile } from './virtual-file.ts';
