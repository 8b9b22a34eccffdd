# The disk of vhost-user-blk: what the client's kernel says of it, ext4 with files that are read again, and a system that another
# client boots from.
set -uo pipefail
fail() { echo "FAILED: $*"; dmesg | tail -8; exit 1; }
say() { echo "-- $*"; }

modprobe virtio_blk ext4 || fail "modprobe"
disk=/dev/vda queue=/sys/block/vda/queue
for _ in $(seq 100); do [ -b $disk ] && break; sleep 0.1; done
[ -b $disk ] || fail "there is no disk"
say "$(cat /sys/block/vda/serial): $(($(cat /sys/block/vda/size) / 2048)) MiB," \
    "blocks of $(cat $queue/logical_block_size) B, $(ls -d /sys/block/vda/mq/* | wc -l) queues, $(cat $queue/write_cache)"
[ "$(cat $queue/logical_block_size)" = 4096 ] || fail "blocks of another size"
blkdiscard -f $disk 2>/dev/null || fail "blkdiscard"
blkdiscard -z -o 1048576 -l 8388608 $disk || fail "zeroes"
[ "$(head -c 9437184 $disk | tail -c 8388608 | tr -d '\0' | wc -c)" = 0 ] || fail "zeroes read as something else"
# Beyond its end, and parts of blocks.
dd if=$disk of=/dev/null bs=4096 skip=$(($(cat /sys/block/vda/size) / 8)) count=1 status=none 2>/dev/null
mkfs.ext4 -q -F $disk || fail "mkfs.ext4"
mount -t ext4 $disk /run/mount || fail "mount"
for number in $(seq 12); do head -c $((number * 50000)) /dev/urandom >/run/mount/file-$number; done
(cd /run/mount && sha256sum file-* >sums) || fail "checksums"
fstrim /run/mount || fail "fstrim"
# The system of the second client: it checks the files that the first one has left, and writes one.
mkdir -p /run/mount/{bin,sbin,proc,sys,dev}
cp "$(command -v busybox)" /run/mount/bin/busybox
cat >/run/mount/sbin/init <<'I'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
cd /
echo "-- root of $(sed -n 's|^\([^ ]*\) / .*|\1|p' /proc/mounts | tail -1), up after $(cut -d' ' -f1 /proc/uptime) s"
if sha256sum -c sums >/dev/null && mount -o remount,rw / && cp file-12 copy && sync && cmp file-12 copy; then
    echo "-- $(wc -l <sums) files are as they were, and another one is written"
    echo "SCRIPT rc=0"
else
    echo "SCRIPT rc=1"
fi
mount -o remount,ro /
poweroff -f
I
chmod +x /run/mount/sbin/init
umount /run/mount || fail "umount"
mount -t ext4 $disk /run/mount || fail "mount again"
(cd /run/mount && sha256sum -c sums >/dev/null) || fail "files have changed"
umount /run/mount
say "$(dmesg | grep -c 'I/O error') errors of the disk; ext4, 12 files and a system are on it"
