/** What other folders may use of vfs/fuse/. Not part of vfs/index.ts: who mounts nothing need not load it. */
export type { ContentFactory, FileContent, FileTree, Served, TreeFile } from './content.ts';
export { type Libc, loadLibc } from './libc.ts';
export { ANSWER_MS as REQUEST_ANSWER_MS, PAGE_BYTES, READ_AHEAD_BYTES } from './limits.ts';
export { LoopbackKernel } from './loopback.ts';
export { type Unmounted, unmountFolder } from './mount.ts';
export { MOUNT_TYPE, type MountEntry, mountAt, probeMount } from './mount-table.ts';
export { type MountedTree, mountTree } from './mounted-tree.ts';
export { notifyStore } from './notify.ts';
export { FuseSession } from './session.ts';
