#!/bin/bash
# The first process of a User-Mode Linux whose root is that of the machine: fio on an array of md over its disks.
# Kernel arguments: level=5|6 devices=N policy=resync|ppl seconds=N full=KIB; a line for each job goes to the console.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C TERM=dumb MDADM_NO_UDEV=1
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /run
mkdir -p /run/mdadm /run/work /run/tree/lib /dev/shm
mount -t tmpfs tmpfs /dev/shm
ln -s /usr/lib/uml/modules /run/tree/lib/modules
argument() { tr ' ' '\n' </proc/cmdline | sed -n "s/^$1=//p"; }
seconds=$(argument seconds) level=$(argument level) devices=$(argument devices) policy=$(argument policy) full=$(argument full)
cd /run/work || exit 1
disk=/dev/md0
modprobe -d /run/tree raid456
disks=$(printf '/dev/ubd%s ' a b c d e f | cut -d' ' -f1-"$devices")
# Its files are zeros, and so is their parity. Without a bitmap: ours has none.
# shellcheck disable=SC2086
mdadm --create $disk --level="$level" --raid-devices="$devices" --chunk=64 --assume-clean --bitmap=none \
    --consistency-policy="$policy" --run $disks >mdadm.log 2>&1 || cat mdadm.log
echo "POLICY $(cat /sys/block/md0/md/consistency_policy), $(dmesg | sed -n 's/.*raid6: using algorithm //p')"
for _ in $(seq 100); do [ -b $disk ] && break; sleep 0.1; done
job() { # NAME RW KIB
    echo "JOB $1 $(fio --name=job --filename=$disk --direct=1 --ioengine=io_uring --rw="$2" --bs="$3k" --iodepth=16 --runtime="$seconds" \
        --ramp_time=1 --time_based --minimal 2>/dev/null | grep '^3;' | cut -d';' -f48)"
}
# All that is written later has its place in memory.
fio --name=fill --filename=$disk --direct=1 --ioengine=io_uring --rw=write --bs=1m --iodepth=4 --minimal >/dev/null 2>&1
job sequential-192 write 192
job full-stripes write "$full"
job random-64 randwrite 64
exec busybox poweroff -f
