#!/usr/bin/env bash
# Makes the parts of a virtual machine in which RDMA exists in software (Soft-RoCE, the kernel's rdma_rxe), from packages of
# Debian, and prints the folder they are in:
#
#   deploy/tests/verbs-vm/setup.sh <cache folder>
#
# Nothing is installed: apt downloads packages into the folder, and what is needed of them is unpacked there. A folder
# is named by the versions of all that went into it, made in one piece, and found again by the next run; those of another day are
# removed.
# Ends with 77, and the reason as the last line on standard error, where such a machine can't be made here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cache=${1:?usage: setup.sh <cache folder>}
skip() { echo "$*" >&2; exit 77; }

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || skip "the machine is made of Debian's packages for amd64, and this is $(uname -s) on $(uname -m)"
for tool in apt-get apt-cache dpkg-deb tar ldd flock sha256sum; do
  command -v $tool >/dev/null || skip "there is no $tool: the machine is made of Debian's packages"
done
node=$root/node_modules/node/bin/node
[ -x "$node" ] || skip "node_modules has no Node.js: npm ci brings it"
if [ -e "$cache" ] && [ ! -O "$cache" ]; then echo "$cache is not yours" >&2; exit 1; fi
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

packages=(qemu-system-x86 libibverbs1 ibverbs-providers ibverbs-utils busybox-static iproute2 e2fsprogs)
lists_lack() { ! apt-cache show linux-image-amd64 "${packages[@]}" >/dev/null 2>&1; }
if lists_lack && [ "$(id -u)" = 0 ]; then apt-get update -qq >&2 || true; fi
if lists_lack; then skip "apt knows no linux-image-amd64 or not all of ${packages[*]}: apt-get update, or it is no Debian"; fi
kernel=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image-/{print $2; exit}')
release=${kernel#linux-image-}
# what is installed here already is taken again, and what these need only where it is missing
wanted=$(apt-get install -qq --print-uris --reinstall --no-install-recommends "${packages[@]}" 2>/dev/null |
  awk '{sub(/_[^_]*$/, "", $2); sub(/_/, "=", $2); gsub(/%3a/, ":", $2); print $2}')
[ -n "$wanted" ] || skip "apt finds no way to have ${packages[*]}"
wanted=$(printf '%s\n' "$wanted" "$kernel=$(apt-cache show "$kernel" | awk '/^Version:/{print $2; exit}')")

# the userland is this machine's C library with Node.js: its version counts too
key=$({ echo "$wanted"; "$node" --version; ldd --version; cat "$root/package-lock.json" "$here/setup.sh" "$here/init.sh"; } |
  sha256sum | cut -c1-16)
folder=$cache/$key
if [ -e "$folder/complete" ]; then echo "$folder"; exit 0; fi
rm -rf "$folder"
# another checkout may be running one that was made today
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +0 -exec rm -rf {} +
mkdir -p "$folder/debs" "$folder/x"

began=$SECONDS
echo "downloading $(echo "$wanted" | wc -l) packages, among them $kernel" >&2
# shellcheck disable=SC2086
(cd "$folder/debs" && apt-get download -qq $wanted >apt.log 2>&1) ||
  skip "packages can't be downloaded: $(tail -1 "$folder/debs/apt.log")"

modules="lib/crc16 crypto/crc32c_generic lib/libcrc32c crypto/crc32_generic drivers/virtio/virtio_ring drivers/virtio/virtio
  drivers/virtio/virtio_pci_legacy_dev drivers/virtio/virtio_pci_modern_dev drivers/virtio/virtio_pci
  drivers/block/virtio_blk fs/mbcache fs/jbd2/jbd2 fs/ext4/ext4 drivers/infiniband/core/ib_core
  drivers/infiniband/core/ib_uverbs net/ipv4/udp_tunnel net/ipv6/ip6_udp_tunnel drivers/infiniband/sw/rxe/rdma_rxe
  drivers/net/veth fs/fuse/fuse"
for deb in "$folder"/debs/*.deb; do
  case $(basename "$deb") in
    linux-image-*) # shellcheck disable=SC2046
      dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$folder/x" --warning=no-unknown-keyword "./boot/vmlinuz-$release" \
        $(for module in $modules; do echo "./lib/modules/$release/kernel/$module.ko"; done) ;;
    *) dpkg-deb --extract "$deb" "$folder/x" ;;
  esac
done
echo "unpacked after $((SECONDS - began)) s" >&2

x=$folder/x
libraries=$x/usr/lib/x86_64-linux-gnu:$x/lib/x86_64-linux-gnu
cat >"$folder/qemu" <<QEMU
#!/bin/sh
exec env LD_LIBRARY_PATH='$libraries' '$x/usr/bin/qemu-system-x86_64' -L '$x/usr/share/qemu' -L '$x/usr/share/seabios' \\
  -L '$x/usr/lib/ipxe/qemu' "\$@"
QEMU
cat >"$folder/mke2fs" <<MKE2FS
#!/bin/sh
export LD_LIBRARY_PATH='$libraries' MKE2FS_CONFIG='$x/etc/mke2fs.conf'
for tool in '$x/sbin/mke2fs' '$x/usr/sbin/mke2fs'; do [ -x "\$tool" ] && exec "\$tool" "\$@"; done
MKE2FS
chmod +x "$folder/qemu" "$folder/mke2fs"
"$folder/qemu" --version >/dev/null 2>"$folder/debs/qemu.log" || skip "QEMU does not start here: $(tail -1 "$folder/debs/qemu.log")"

# first only a shell and the modules, which find the disk
early=$folder/early
mkdir -p "$early"/{bin,dev,modules,disk}
cp "$x/bin/busybox" "$early/bin/"
for module in $modules; do
  cp "$x/lib/modules/$release/kernel/$module.ko" "$early/modules/"
  basename "$module"
done >"$early/modules/order"
cp "$here/init.sh" "$early/init"
chmod +x "$early/init"
(cd "$early" && find . | "$x/bin/busybox" cpio -o -H newc 2>/dev/null) >"$folder/initramfs"

# then a small system with libibverbs, Node.js and packages of the project, of which those that no test in there needs stay out
system=$folder/system
mkdir -p "$system"/{bin,dev,proc,sys,tmp,run,repo,opt/node_modules,lib64,lib/x86_64-linux-gnu,etc/libibverbs.d,usr/bin}
mkdir -p "$system/usr/lib/x86_64-linux-gnu/libibverbs"
cp "$x/bin/busybox" "$system/bin/"
for applet in $("$x/bin/busybox" --list); do
  [ "$applet" = busybox ] || ln -s busybox "$system/bin/$applet"
done
ln -s /bin/busybox "$system/usr/bin/env"
for tool in ip rdma ibv_devinfo; do
  rm -f "$system/bin/$tool"
  cp "$(find "$x" -name $tool -type f -perm -100 -path '*bin/*' | head -1)" "$system/bin/$tool"
done
cp "$node" "$system/bin/node"
cp "$x"/etc/libibverbs.d/rxe.driver "$system/etc/libibverbs.d/"
cp "$x"/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav*.so "$system/usr/lib/x86_64-linux-gnu/libibverbs/"
cp -L "$x/usr/lib/x86_64-linux-gnu/libibverbs.so.1" "$system/lib/x86_64-linux-gnu/"
linked() { LD_LIBRARY_PATH=$libraries ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u; }
for library in $(linked "$system"/bin/{ip,rdma,ibv_devinfo,node} "$system/lib/x86_64-linux-gnu/libibverbs.so.1"); do
  [ -e "$system/lib/x86_64-linux-gnu/$(basename "$library")" ] || cp -L "$library" "$system/lib/x86_64-linux-gnu/"
done
cp -L /lib64/ld-linux-x86-64.so.2 "$system/lib64/"
echo 'root:x:0:0:root:/tmp:/bin/sh' >"$system/etc/passwd"
echo '127.0.0.1 localhost' >"$system/etc/hosts"
tar -c -C "$root/node_modules" --exclude=./node --exclude='./@biomejs' --exclude='./*typescript*' --exclude=./binaryen \
  --exclude='./@duckdb' --exclude='./*oxc-*' --exclude=./knip --exclude='./assemblyscript' --exclude=./.bin . |
  tar -x -C "$system/opt/node_modules"
# shellcheck disable=SC2012
"$folder/mke2fs" -q -t ext4 -O ^has_journal -m 0 -d "$system" "$folder/system.img" \
  "$(($(du -sk --apparent-size "$system" | cut -f1) * 5 / 4 + 32768))k" >&2
cp "$x/boot/vmlinuz-$release" "$folder/vmlinuz"
echo "$wanted" >"$folder/packages"
rm -rf "$folder/debs" "$early" "$system" "$x/boot" "$x/lib/modules" "$x/usr/share/doc" "$x/usr/share/man" "$x/usr/share/locale"
echo "made in $((SECONDS - began)) s, $(du -sh "$folder" | cut -f1)" >&2
touch "$folder/complete"
echo "$folder"
