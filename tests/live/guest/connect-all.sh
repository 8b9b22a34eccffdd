# What a user does first: ask what there is, connect to all of it, write to one drive and read it again, let all go.
. "$(dirname "$0")/common.sh" "$@"
shift 3
expected=$1
# Of all drives that discovery named, how many have a block device.
connected() { local name; for name in $offered; do device_of "$name"; done | grep -c .; }

nvme discover -t tcp -a "$address" -s "$port" >discover || fail "discover"
offered=$(sed -n 's/^subnqn: *//p' discover | grep -v discovery | sort -u)
[ "$(echo "$offered" | grep -c .)" = "$expected" ] || { cat discover; fail "discovery does not name $expected drives"; }
[ "$(sed -n 's/^traddr: *//p' discover | sort -u)" = "$address" ] || { cat discover; fail "discovery names other addresses than $address"; }
nvme connect-all -t tcp -a "$address" -s "$port" >answer 2>&1 || { sort answer | uniq -c; fail "connect-all"; }
for _ in $(seq 100); do [ "$(connected)" = "$expected" ] && break; sleep 0.2; done
[ "$(connected)" = "$expected" ] || { sort answer | uniq -c; fail "connect-all has connected $(connected) of $expected drives"; }
say "all $expected drives connected, $(cut -d' ' -f1 /proc/uptime) s after the start"

device=$(device_of "$nqn")
head -c 4194304 /dev/urandom >pattern
dd if=pattern of="$device" bs=256k seek=3 oflag=direct conv=fsync 2>answer || { cat answer; fail "write"; }
dd if="$device" of=back bs=256k skip=3 count=16 iflag=direct 2>answer && cmp pattern back || { cat answer; fail "what was written is not read"; }
nvme disconnect-all || fail "disconnect-all"
[ "$(connected)" = 0 ] || fail "$(connected) drives are left after disconnect-all"
device=$(connect) || fail "connect"
dd if="$device" of=back bs=256k skip=3 count=16 iflag=direct 2>answer && cmp pattern back || { cat answer; fail "it is not read after connecting again"; }
disconnect
dmesg | grep -E 'I/O error|timeout' && fail "the kernel has found errors"
say "written to one, read again, and once more after all were disconnected"
