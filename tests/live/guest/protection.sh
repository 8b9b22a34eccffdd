# A drive with protection information of type 1 as Linux has it over TCP: a disk as any other, of whose blocks the controller makes and
# takes off the tuples. A tuple that is wrong is an error of the disk.
. "$(dirname "$0")/common.sh" "$@"
device=$(connect) || fail "connect"
disk=/sys/block/$(basename "$device")
tuple() { # BLOCK: the eight bytes behind it, as hexadecimal digits, which nothing compares
    nvme read "$device" --start-block="$1" --data-size=4104 --data=found >answer 2>&1 || { cat answer; fail "block $1 cannot be read with its tuple"; }
    tail -c 8 found | od -An -tx1 | tr -d ' \n'
}
spoil() { # BLOCK TUPLE: writes it without a look at the tuple, which is text of printf
    { dd if="$device" bs=4k skip="$1" count=1 iflag=direct 2>/dev/null; printf "$2"; } >spoilt
    nvme write "$device" --start-block="$1" --data-size=4104 --data=spoilt >answer 2>&1 || { cat answer; fail "block $1 cannot be written with a tuple"; }
}
refused() { # BLOCK WHAT
    dd if="$device" of=/dev/null bs=4k skip="$1" count=1 iflag=direct 2>answer && fail "$2 is not seen"
    dmesg | grep -E "protection error, dev nvme[0-9c]+n1, sector $(($1 * 8)) " >/dev/null || { cat answer; fail "$2 is no protection error of the kernel"; }
    say "$2: $(grep -o 'error reading.*' answer)"
}

nvme id-ns "$device" | grep -E '^dps *: 0x1$' >/dev/null || fail "the namespace has no protection of type 1"
[ "$(cat "$disk/size")" -gt 0 ] || fail "the disk has no capacity"
say "$(cat "$disk/size") sectors, integrity of the kernel: $(cat "$disk/integrity/format" 2>/dev/null || echo none)"
mkfs.ext4 -q "$device" 65536 || fail "mkfs"
head -c 4194304 /dev/urandom >pattern
dd if=pattern of="$device" bs=64k seek=8192 oflag=direct conv=notrunc 2>answer || { cat answer; fail "write"; }
dd if="$device" of=back bs=64k skip=8192 count=64 iflag=direct 2>answer && cmp pattern back || { cat answer; fail "what was written is not read"; }
e2fsck -fn "$device" >answer 2>&1 || { cat answer; fail "the file system is damaged"; }

# The guard is checked below against one that is wrong; the tags are 0 and the address.
block=131075
made=$(tuple $block)
[ "${made:4}" = "000000020003" ] || fail "the tuple of block $block is $made"
say "the drive has made the tuple $made of block $block"
nvme read "$device" --start-block=$block --data-size=4104 --data=found --prinfo=7 --ref-tag=$block >/dev/null || fail "a right tuple is refused"
spoil $block '\xab\xcd\x00\x00\x00\x02\x00\x03'
refused $block "a wrong guard"
nvme read "$device" --start-block=$block --data-size=4104 --data=found --prinfo=4 --ref-tag=$block >answer 2>&1 && fail "nvme read takes a wrong guard"
grep -qi 'guard' answer || { cat answer; fail "nvme read names another error"; }
spoil 131080 "$(printf '\\x%s\\x%s' "$(tuple 131080 | cut -c1-2)" "$(tuple 131080 | cut -c3-4)")"'\x00\x00\x00\x02\x00\x09'
refused 131080 "a block that belongs elsewhere"
# What is written with a right tuple is whole again.
dd if=pattern of="$device" bs=4k seek=$block count=1 oflag=direct conv=notrunc 2>answer || { cat answer; fail "write over the wrong guard"; }
dd if="$device" of=back bs=4k skip=$block count=1 iflag=direct 2>answer && cmp -n 4096 pattern back || { cat answer; fail "the block is not whole again"; }
[ "$(nvme error-log "$device" | grep -ci 'guard\|reference')" -ge 2 ] || { nvme error-log "$device" | head -40; fail "the error log does not tell of both"; }
disconnect
