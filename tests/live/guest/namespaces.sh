# A drive that Linux divides: namespaces are created, attached, formatted, written and deleted.
. "$(dirname "$0")/common.sh" "$@"
device=$(connect) || fail "connect"
control=$(controller "$device")
id=$(nvme id-ctrl "$control" -o json | grep -o '"cntlid" *: *[0-9]*' | grep -o '[0-9]*$')
[ -n "$id" ] || fail "the controller has no number"
free() { nvme id-ctrl "$control" | sed -n 's/^unvmcap *: *//p'; }
await() { # FILE: until it is there
    for _ in $(seq 100); do [ -b "$1" ] && return 0; sleep 0.1; done
    return 1
}

head -c 65536 /dev/urandom >pattern
dd if=pattern of="$device" bs=64k oflag=direct conv=notrunc 2>/dev/null || fail "the whole drive cannot be written"
[ "$(free)" -eq 0 ] || fail "a drive of one namespace has $(free) bytes free"
nvme create-ns "$control" --nsze=1 --ncap=1 --flbas=0 --nmic=1 && fail "a namespace was created on a full drive"
nvme delete-ns "$control" --namespace-id=1 || fail "delete"
all=$(free)
say "free: $all bytes"
nvme create-ns "$control" --nsze=8192 --ncap=8192 --flbas=0 --nmic=1 || fail "create"
nvme create-ns "$control" --nsze=65536 --ncap=65536 --flbas=1 --nmic=1 || fail "create with small blocks"
[ "$(free)" -eq $((all - 2 * 33554432)) ] || fail "$(free) bytes are free"
nvme list-ns "$control" --all
for number in 1 2; do
    nvme attach-ns "$control" --namespace-id=$number --controllers="$id" || fail "attach $number"
done
first=${device%n*}n1 second=${device%n*}n2
await "$first" && await "$second" || fail "Linux does not see both"
sizes="$(blockdev --getss "$first") $(blockdev --getss "$second") $(blockdev --getsize64 "$first") $(blockdev --getsize64 "$second")"
[ "$sizes" = "4096 512 33554432 33554432" ] || fail "sizes $sizes"
cmp -n 33554432 /dev/zero "$first" || fail "a new namespace holds something"
mkfs.ext4 -q "$second" || fail "mkfs"
dd if=pattern of="$first" bs=64k oflag=direct seek=3 conv=notrunc 2>/dev/null || fail "write"
e2fsck -fn "$second" >/dev/null 2>&1 || fail "the file system of the second namespace is damaged"
# The machine that serves changes the size of the first namespace, as run.sh does for each file of this name. Linux hears of it
# from the controller, and by nothing that is done here.
for size in 67108864 16777216 33554432; do
    touch "/run/out/resize-$size"
    for _ in $(seq 100); do
        seen=$(($(cat "/sys/block/${first##*/}/size") * 512))
        [ $seen -ne $size ] || break
        sleep 0.2
    done
    [ $seen -eq $size ] || fail "Linux sees $seen bytes after a resize to $size"
    dd if="$first" of=back bs=64k skip=3 count=1 iflag=direct 2>/dev/null && cmp pattern back || fail "what was written is not read after a resize to $size"
    say "Linux has followed a resize to $size bytes"
done
cmp -n 16777216 -i 16777216:0 "$first" /dev/zero || fail "what a smaller size has cut off is still there"
e2fsck -fn "$second" >/dev/null 2>&1 || fail "a resize has damaged the other namespace"
nvme detach-ns "$control" --namespace-id=1 --controllers="$id" || fail "detach"
sleep 1
[ -b "$first" ] && dd if="$first" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null && fail "a detached namespace is read"
nvme attach-ns "$control" --namespace-id=1 --controllers="$id" || fail "attach again"
await "$first" || fail "Linux does not see it again"
dd if="$first" of=back bs=64k skip=3 count=1 iflag=direct 2>/dev/null && cmp pattern back || fail "what was written is not read"
nvme delete-ns "$control" --namespace-id=1 || fail "delete the first"
[ "$(free)" -eq $((all - 33554432)) ] || fail "$(free) bytes are free after the deletion"
e2fsck -fn "$second" >/dev/null 2>&1 || fail "the deletion has damaged the other namespace"
disconnect
say "divided and put together"
