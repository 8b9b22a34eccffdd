# What the scripts of the client share. Each gets: ADDRESS PORT NQN, then its own arguments,
# which it comes to with `shift 3`.
set -uo pipefail
address=$1 port=$2 nqn=$3

fail() { echo "FAILED: $*"; dmesg | tail -8; nvme list-subsys 2>/dev/null; exit 1; }
say() { echo "-- $*"; }

# Prints the device of the first namespace of a subsystem, if it has one.
device_of() { # NQN
    local found name
    for found in /sys/class/nvme-subsystem/*/; do
        read -r name <"$found/subsysnqn" && [ "$name" = "$1" ] || continue
        for found in "$found"/nvme*n*; do
            found=/dev/${found##*/}
            [[ $found =~ ^/dev/nvme[0-9]+n[0-9]+$ ]] && [ -b "$found" ] && { echo "$found"; return 0; }
        done
    done 2>/dev/null
    return 1
}
# Connects and prints the device of the first namespace. More options of `nvme connect` may follow.
connect() {
    nvme connect -t tcp -a "$address" -s "$port" -n "$nqn" "$@" >/dev/null || return 1
    for _ in $(seq 100); do
        device_of "$nqn" && return 0
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
