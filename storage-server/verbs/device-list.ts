/** Which RDMA devices this machine has, and what to say when there is none. */
import { existsSync, readdirSync } from 'node:fs';
import type { VerbsLibrary } from './library.ts';

/** Where the kernel lists them. */
const CLASS_FOLDER = '/sys/class/infiniband';

interface ListedDevice {
  readonly name: string;
}

interface FoundDevice extends ListedDevice {
  readonly pointer: bigint;
}

/** Pointers to devices are good within `use` alone. */
export function withDeviceList<T>(library: VerbsLibrary, use: (devices: readonly FoundDevice[]) => T): T {
  const { list, devices } = library.deviceList();
  try {
    return use(devices.map((pointer) => ({ pointer, name: library.deviceName(pointer) })));
  } finally {
    if (list !== null) library.freeDeviceList(list);
  }
}

/** Why none of them is what is wanted. */
export function deviceListText(devices: readonly ListedDevice[], wanted: string | undefined): string {
  const names = devices.map(({ name }) => name).join(', ');
  if (devices.length > 0) return `there is no RDMA device ${wanted}: there are ${names}`;
  const known = kernelDevices();
  if (known.length > 0) {
    return `the kernel has ${known.join(', ')}, but the library no driver for it: install ibverbs-providers (rdma-core), and see whether /dev/infiniband is there`;
  }
  return (
    'this machine has no RDMA device: `rdma link` lists them, `rdma link add rxe0 type rxe netdev <name>` makes one of ' +
    'any network interface; the library is libibverbs (Debian, Ubuntu: apt install libibverbs1 ibverbs-providers; ' +
    'Fedora, RHEL: dnf install libibverbs rdma-core)'
  );
}

/** Whether the kernel says that it has none: then there is no need to look for a library. */
export function hasNoDevice(): boolean {
  return existsSync('/sys/class') && kernelDevices().length === 0;
}

function kernelDevices(): readonly string[] {
  return existsSync(CLASS_FOLDER) ? readdirSync(CLASS_FOLDER) : [];
}
