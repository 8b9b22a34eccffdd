#!/bin/bash
# The first process of the client: mounts what programs expect, runs the script of the command line, powers off.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TERM=dumb
mount -t proc proc /proc
mount -t sysfs sys /sys
argument() { tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p"; }
mount -t tmpfs tmpfs /run
mount -t devpts pts /dev/pts 2>/dev/null || { mkdir -p /dev/pts; mount -t devpts pts /dev/pts; }
mkdir -p /dev/shm
ln -sf /proc/self/fd /dev/fd
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mkdir -p /run/work /run/mount /run/out
# Results go to a directory of the host, the only one that can be written.
mount -t hostfs -o "$(argument out)" none /run/out
ip link set lo up
if [ -n "$(argument address)" ]; then
    ip link set vec0 up
    ip addr add "$(argument address)/24" dev vec0
fi
cd /run/work || exit 1
bash "$(argument script)" $(argument arguments | tr , ' ')
echo "SCRIPT rc=$? after $(cut -d' ' -f1 /proc/uptime) s"
sync
exec busybox poweroff -f
