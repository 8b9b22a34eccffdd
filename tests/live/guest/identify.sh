# Everything that nvme-cli asks of a drive, and the commands that are not reads and writes.
. "$(dirname "$0")/common.sh" "$@"
shift 3

# Not into `grep -q`, which may leave before all is said.
nvme discover -t tcp -a "$address" -s "$port" >discover || fail "discover"
grep -q "$nqn" discover || fail "discovery does not name $nqn"
device=$(connect) || fail "connect"
drive=$(controller "$device")
nvme list | grep "$device" || fail "list"
nvme list-subsys >subsystems
grep -q "$nqn" subsystems || fail "list-subsys"
for command in "id-ctrl $drive" "id-ns $device" "list-ns $drive" "ns-descs $device" "list-ctrl $drive" "cmdset-ind-id-ns $device -n 1" \
    "smart-log $drive" "error-log $drive" "fw-log $drive" "effects-log $drive" "supported-log-pages $drive" \
    "changed-ns-list-log $drive"; do
    nvme $command >answer 2>&1 || { cat answer; fail "nvme $command"; }
done
nvme telemetry-log "$drive" --output-file=telemetry --data-area=3 >/dev/null 2>answer || { cat answer; fail "telemetry-log"; }
# A data area begins behind the zeros that fill the one before it, and not with a line of its own.
grep -aq 'written bytes: ' telemetry && grep -aq 'superblocks erased ' telemetry || fail "the telemetry log has no counters"
nvme id-ctrl "$drive" | sed -n '4,8p'
nvme id-ns "$device" | sed -n '2,4p'
nvme smart-log "$drive" | grep -E 'available_spare|percentage_used|Data Units|host_' || fail "smart-log"
for feature in 1 2 4 5 7 8 9 10 11; do
    nvme get-feature "$drive" -f "$feature" >answer 2>&1 || { cat answer; fail "get-feature $feature"; }
done
# The drives have no volatile write cache (VWC), and so no feature of one.
nvme get-feature "$drive" -f 6 >answer 2>&1 && fail "there is a feature of a write cache that is not there"
nvme set-feature "$drive" -f 4 --value 350 >/dev/null 2>&1 || say "temperature threshold cannot be set"
nvme admin-passthru "$drive" -o 0xC1 >answer 2>&1
grep -q 'Invalid Command Opcode' answer || fail "an unknown opcode is not refused as one"

head -c 16384 /dev/urandom >pattern
nvme write "$device" -s 64 -c 3 -z 16384 -d pattern >/dev/null 2>&1 || fail "write"
nvme read "$device" -s 64 -c 3 -z 16384 -d back >/dev/null 2>&1 && cmp pattern back || fail "what was written is not read"
nvme compare "$device" -s 64 -c 3 -z 16384 -d pattern >/dev/null 2>&1 || fail "compare of equal data"
head -c 16384 /dev/zero >zeroes
nvme compare "$device" -s 64 -c 3 -z 16384 -d zeroes >answer 2>&1 && fail "compare of other data"
grep -qi 'compare' answer || fail "compare of other data says: $(cat answer)"
nvme verify "$device" -s 64 -c 3 >/dev/null 2>&1 || fail "verify"
nvme write-zeroes "$device" -s 65 -c 0 >/dev/null || fail "write-zeroes"
nvme dsm "$device" -d -s 66 -b 2 >/dev/null || fail "dsm"
nvme flush "$device" >/dev/null || fail "flush"
nvme read "$device" -s 64 -c 3 -z 16384 -d back >/dev/null 2>&1 || fail "read"
cmp <(head -c 4096 pattern) <(head -c 4096 back) || fail "the block before was changed"
cmp <(head -c 4096 zeroes) <(tail -c +4097 back | head -c 4096) || fail "zeroes are not read as zeroes"
disconnect
say "commands answered"
