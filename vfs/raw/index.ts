/** What other folders may use of vfs/raw/. */
export { READ_KEPT_BYTES } from '../limits.ts';
export { RangeStore } from './range-store.ts';
export { RawContent } from './raw-content.ts';
export type { StoredFile } from './stored-file.ts';
export { FileUnits } from './units.ts';
