# What the scripts of the client share. Each gets: ADDRESS PORT NQN, then its own arguments,
# which it comes to with `shift 3`.
set -uo pipefail
address=$1 port=$2 nqn=$3

fail() { echo "FAILED: $*"; dmesg | tail -8; nvme list-subsys 2>/dev/null; exit 1; }
say() { echo "-- $*"; }

# Connects and prints the device of the first namespace. More options of `nvme connect` may follow.
connect() {
    nvme connect -t tcp -a "$address" -s "$port" -n "$nqn" "$@" >/dev/null || return 1
    for _ in $(seq 100); do
        for found in /sys/class/nvme-subsystem/*/; do
            [ "$(cat "$found/subsysnqn")" = "$nqn" ] || continue
            device=$(ls "$found" | grep -E '^nvme[0-9]+n[0-9]+$' | head -1)
            [ -n "$device" ] && [ -b "/dev/$device" ] && { echo "/dev/$device"; return 0; }
        done
        sleep 0.1
    done
    return 1
}
# The controller's character device of that namespace.
controller() { basename "$1" | sed -E 's|^(nvme[0-9]+).*|/dev/\1|'; }
disconnect() { nvme disconnect -n "$nqn" >/dev/null; }
# Values of terse fio output.
read_iops() { cut -d';' -f8; }
read_mean_us() { cut -d';' -f40; }
