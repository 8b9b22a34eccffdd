# A zoned drive as Linux has it: a host-managed disk, of which one zone is written in order, finished and reset.
. "$(dirname "$0")/common.sh" "$@"
shift 3
device=$(connect) || fail "connect"
disk=/sys/block/$(basename "$device")
zone_kib=$1 capacity_kib=$2

[ "$(cat "$disk/queue/zoned")" = host-managed ] || fail "the disk is $(cat "$disk/queue/zoned")"
sectors=$(cat "$disk/queue/chunk_sectors")
[ "$sectors" -eq $((zone_kib * 2)) ] || fail "zones of $sectors sectors"
say "host-managed, $(blkzone report "$device" | wc -l) zones, $(cat "$disk/queue/max_open_zones") open and $(cat "$disk/queue/max_active_zones") active ones"
state() { # ZONE: its capacity, pointer and state as blkzone says them, in sectors
    blkzone report --offset $(($1 * sectors)) --count 1 "$device" | sed -E 's/,//g; s/.*cap 0x0*([0-9a-f]+) wptr 0x0*([0-9a-f]*) .*zcond: *([0-9]+).*/\1 \2 \3/'
}
is() { # ZONE STATE WHAT: the state as the last number
    local found
    found=$(state "$1")
    [ "${found##* }" = "$2" ] || fail "$3: zone $1 is '$found'"
    say "$3: zone $1 is '$found'"
}
put() { # KIB-FROM-THE-ZONE KIB FILE
    dd if="$3" of="$device" bs=64k seek=$(((2 * zone_kib + $1) * 1024)) count=$(($2 * 1024)) iflag=count_bytes oflag=direct,seek_bytes conv=notrunc 2>/dev/null
}

is 2 1 "new"
head -c $((1024 * 1024)) /dev/urandom >pattern
put 0 1024 pattern || fail "the beginning of a zone cannot be written"
is 2 2 "written"
dd if="$device" of=back bs=64k skip=$((2 * zone_kib * 1024)) count=$((1024 * 1024)) iflag=direct,skip_bytes,count_bytes 2>/dev/null && cmp pattern back || fail "what was written is not read"
put 4096 64 pattern && fail "a write behind the pointer was taken"
put 1024 256 pattern || fail "the next blocks cannot be written"
blkzone finish --offset $((2 * sectors)) --count 1 "$device" || fail "finish"
is 2 14 "finished"
blkzone reset --offset $((2 * sectors)) --count 1 "$device" || fail "reset"
is 2 1 "reset"
dd if="$device" of=back bs=64k skip=$((2 * zone_kib * 1024)) count=$((1024 * 1024)) iflag=direct,skip_bytes,count_bytes 2>/dev/null
cmp -n 1048576 /dev/zero back || fail "a zone that was reset does not read as zeros"
fio --name=zones --filename="$device" --zonemode=zbd --direct=1 --ioengine=psync --rw=randwrite --bs=16k --size=$((8 * zone_kib))k \
    --io_size=8m --max_open_zones=4 --verify=crc32c --minimal >fio.log 2>&1 || { cat fio.log; fail "fio --zonemode=zbd"; }
blkzone reset "$device" || fail "reset of all zones"
is 0 1 "all reset"
[ "$(blkzone report "$device" | grep -c 'cap 0x0*'"$(printf %x $((capacity_kib * 2)))")" -gt 0 ] || fail "capacity"
disconnect
