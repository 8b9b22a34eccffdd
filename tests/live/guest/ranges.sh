# Parts of a drive deallocated or zeroed by one command after the other: those blocks and no others read as zeros.
. "$(dirname "$0")/common.sh" "$@"
shift 3
blocks=256
device=$(connect) || fail "connect"
last=$(($(blockdev --getsize64 "$device") / 4096 - blocks))
# What ought to be there is kept in a file; both are changed alike.
zero() { # FIRST COUNT, of the region
    dd if=/dev/zero of=expected bs=4096 seek="$1" count="$2" conv=notrunc 2>/dev/null
}
fill() { # FIRST-OF-REGION
    region=$1
    head -c $((blocks * 4096)) /dev/urandom >expected
    dd if=expected of="$device" bs=64k seek=$((region * 4096)) oflag=direct,seek_bytes conv=notrunc,fsync 2>/dev/null || fail "write"
}
same() { # COMMAND
    dd if="$device" of=back bs=64k count=$((blocks * 4096)) skip=$((region * 4096)) iflag=direct,skip_bytes,count_bytes 2>/dev/null ||
        fail "read after $1"
    cmp expected back || fail "$1: a block that it does not name has changed, or one that it names has not"
    say "$1: as named"
}

fill 1000
nvme dsm "$device" -d -s 1003,1100,1200 -b 1,40,17 >/dev/null || fail "dsm"
zero 3 1 && zero 100 40 && zero 200 17
same "three ranges deallocated"
nvme dsm "$device" -d -s 1010,1012,1008,1012 -b 2,1,4,3 >/dev/null || fail "dsm of ranges that overlap"
zero 8 7
same "ranges that overlap, in no order"
nvme write-zeroes "$device" -s 1050 -c 9 >/dev/null || fail "write-zeroes"
zero 50 10
same "zeros written"
nvme write-zeroes "$device" -d -s 1070 -c 3 >/dev/null || fail "write-zeroes with deallocation"
zero 70 4
same "zeros written by deallocating"
blkdiscard -o $((1220 * 4096)) -l $((20 * 4096)) "$device" || fail "blkdiscard"
zero 220 20
same "blkdiscard"
fill "$last"
blkdiscard -z -o $(((last + 255) * 4096)) -l 4096 "$device" || fail "blkdiscard -z"
zero 255 1
same "the last block"
nvme dsm "$device" -d -s $((last + 200)) -b 57 >/dev/null 2>&1 && fail "a range beyond the end was taken"
same "a range beyond the end is refused"
fill 1000
blkdiscard "$device" || fail "blkdiscard of the whole drive"
zero 0 $blocks
same "the whole drive deallocated"
dmesg | grep -E 'I/O error|timeout' && fail "the kernel has found errors"
disconnect
