# One of two hosts of a drive. Each has a block by which it tells the other something, and a region that it writes; both write
# at once, and each reads what the other has written.
. "$(dirname "$0")/common.sh" "$@"
shift 3
own=$1 other=$2
uuid=00000000-0000-4000-8000-00000000000$own
device=$(connect --hostnqn=nqn.2014-08.org.nvmexpress:uuid:$uuid --hostid=$uuid) || fail "connect"
tell() { printf '%-4096s' "$*" | dd of="$device" bs=4096 seek="$own" iflag=fullblock oflag=direct conv=notrunc 2>/dev/null || fail "write"; }
told() { # PATTERN: waits until the other says so, and prints it
    local word
    for _ in $(seq 600); do
        word=$(dd if="$device" bs=4096 skip="$other" count=1 iflag=direct 2>/dev/null | tr -d '\0 ')
        case $word in $1) echo "$word"; return 0 ;; esac
        sleep 0.2
    done
    return 1
}
tell here
told 'here*' >/dev/null || fail "the other host has not come"
say "both hosts are there"
fio --name=verify --filename="$device" --allow_file_create=0 --direct=1 --ioengine=io_uring --iodepth=16 --rw=randrw --bs=4k \
    --offset=$((own * 64))m --size=8m --verify=crc32c --minimal >figures || { cat figures; fail "verification beside another host"; }
head -c 4194304 /dev/urandom >region
dd if=region of="$device" bs=256k seek=$((own * 64 + 32))M oflag=direct,seek_bytes conv=notrunc,fsync 2>/dev/null || fail "write"
tell "here:$(sha256sum <region | cut -c1-64)"
sum=$(told 'here:*') || fail "the other host has written nothing"
dd if="$device" of=region bs=256k skip=$((other * 64 + 32))M count=16 iflag=direct,skip_bytes 2>/dev/null || fail "read"
[ "here:$(sha256sum <region | cut -c1-64)" = "$sum" ] || fail "what the other host has written is not read"
disconnect
say "both wrote at once, and each has read what the other wrote"
