#!/bin/busybox sh
# The first process of the virtual machine, twice: in the initial memory file system it loads modules and moves to the disk;
# there it makes two Soft-RoCE devices with a cable between them, runs what the other disk says, tells how that ended
# and switches off. Two devices in one namespace, since up to Linux 6.12 or so rdma_rxe sends and receives in the first namespace
# only; rules of routing keep what goes from one address to the other off the loopback device.
export PATH=/bin HOME=/tmp TMPDIR=/tmp NO_COLOR=1
if [ ! -e /repo ]; then
  # the order is that of one kernel; what another one wants earlier is there in the second round
  /bin/busybox mount -t devtmpfs dev /dev
  for module in $(/bin/busybox cat /modules/order) $(/bin/busybox cat /modules/order); do
    /bin/busybox insmod /modules/$module.ko 2>/dev/null
  done
  tries=100
  until [ -b /dev/vdb ] || [ $((tries -= 1)) = 0 ]; do /bin/busybox sleep 0.1; done
  /bin/busybox mount -t ext4 -o ro,noatime /dev/vda /disk || echo 'the disk is not there'
  /bin/busybox cp /init /dev/init
  /bin/busybox mount --move /dev /disk/dev
  exec /bin/busybox switch_root /disk /bin/busybox sh /dev/init
fi
mount -t proc proc /proc
mount -t sysfs sys /sys
mkdir -p /dev/shm
for folder in /dev/shm /tmp /run; do mount -t tmpfs tmpfs $folder; done
mount -t ext4 -o noatime /dev/vdb /repo
dmesg -n 1

# 9000 bytes, as networks with RDMA have it: packets of 4 KiB fit
# not the ip that the shell brings along
ip() { /bin/ip "$@"; }
ip link set lo up
ip link add eth0 mtu 9000 type veth peer name eth1 mtu 9000
for n in 0 1; do
  ip addr add 10.77.0.$((n + 1))/24 dev eth$n
  echo 1 >/proc/sys/net/ipv4/conf/eth$n/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/eth$n/rp_filter
  ip rule add pref 1 iif eth$n lookup local
done
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
ip rule add pref 100 lookup 100
ip rule add pref 200 lookup local
ip rule del pref 0
# also the way to have the cable back after `ip link set eth0 down`, which takes its routes away
cat >/run/plug <<'PLUG'
#!/bin/sh
/bin/ip link set eth0 up
/bin/ip link set eth1 up
/bin/ip route replace 10.77.0.2/32 dev eth0 src 10.77.0.1 table 100
/bin/ip route replace 10.77.0.1/32 dev eth1 src 10.77.0.2 table 100
PLUG
chmod +x /run/plug
/run/plug
for n in 0 1; do rdma link add rxe$n type rxe netdev eth$n; done
uname -sr
rdma link
ibv_devinfo | grep -E 'hca_id|state|active_mtu|link_layer'
cd /repo
sh /repo/.vm-command
echo "the command ended with $?"
read -r up rest </proc/uptime
echo "up for $up s"
sync
poweroff -f
