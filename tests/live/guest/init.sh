#!/bin/bash
# The first process of the client: mounts what programs expect, runs the script of the command line, powers off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TERM=dumb
argument() { tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p"; }
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm /run/work /run/mount /run/out
mount -t devpts pts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ln -sf /proc/self/fd /dev/fd
# Results go to a directory of the host, the only one that can be written.
mount -t 9p -o trans=virtio,version=9p2000.L out /run/out
ip link set lo up
ip link set eth0 up
ip addr add "$(argument address)/24" dev eth0
modprobe nvme-tcp
echo "-- Linux $(uname -r), up after $(cut -d' ' -f1 /proc/uptime) s"
cd /run/work || exit 1
bash "$(argument script)" $(argument arguments | tr , ' ')
echo "SCRIPT rc=$? after $(cut -d' ' -f1 /proc/uptime) s"
sync
exec busybox poweroff -f
