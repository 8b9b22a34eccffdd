# mkfs, mount, fio with verification, trim, unmount, disconnect, connect again and read it all again.
. "$(dirname "$0")/common.sh" "$@"
shift 3
size=${1:-64m}

for options in "" "--hdr-digest --data-digest"; do
    for kind in ext4 xfs f2fs; do
        device=$(connect $options) || fail "connect $options"
        blkdiscard -f "$device" 2>/dev/null || fail "blkdiscard"
        case $kind in
        ext4) mkfs.ext4 -q -F "$device" ;;
        xfs) mkfs.xfs -q -f "$device" ;;
        f2fs) mkfs.f2fs -f "$device" >/dev/null ;;
        esac || fail "mkfs.$kind"
        mount -t "$kind" "$device" /run/mount || fail "mount $kind"
        fio --name=verify --directory=/run/mount --size="$size" --rw=randwrite --bs=4k --direct=1 --ioengine=io_uring \
            --iodepth=16 --verify=crc32c --end_fsync=1 --minimal >figures || { cat figures; fail "fio on $kind"; }
        head -c 4000000 /dev/urandom >/run/mount/file
        sum=$(sha256sum </run/mount/file)
        fstrim /run/mount || fail "fstrim on $kind"
        umount /run/mount || fail "umount $kind"
        disconnect
        device=$(connect $options) || fail "connect again"
        mount -t "$kind" "$device" /run/mount || fail "mount $kind again"
        [ "$(sha256sum </run/mount/file)" = "$sum" ] || fail "$kind: the file has changed"
        umount /run/mount
        disconnect
        say "$kind ${options:-without digests}: written and verified, $(cut -d';' -f49 figures) writes/s"
    done
done
