#!/usr/bin/env bash
# Real clients against `flashyard serve`: the Linux NVMe/TCP host in User-Mode Linux, over a network of its own.
# usage: run.sh [CASE]...     cases: identify wire filesystems load reconnect auth multipath pull cuts databases crash; all but `soak` by default
# environment: SOAK_SECONDS (of `soak`, 1800), KEEP (do not remove what a failed case leaves)
#
# Needs root (network namespace, tap) and the packages that `packages.sh` installs; says so and ends with 77 without them.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
work=$target/live-clients
kernel=$work/linux
netns=flashyard-live
server=192.168.77.1
inside="ip netns exec $netns"
prefix=nqn.2026-11.io.flashyard:drive-
scenario=$root/scenarios/live/scenario.toml

skip() { echo "SKIPPED: $*; no real client was run" >&2; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "the network of the clients needs root"
for program in ip nvme fio mkfs.ext4 mkfs.xfs mkfs.f2fs busybox; do
    command -v "$program" >/dev/null || skip "$program is missing (tests/live/packages.sh installs it)"
done
# Its kernel has no room for their registers: "ptrace set fp regs failed", and init dies.
! grep -qw amx_tile /proc/cpuinfo || skip "Linux 6.1 as a process does not run on processors with AMX"
[ -c /dev/net/tun ] || skip "/dev/net/tun is missing"
mkdir -p "$work"
"$here/host/kernel.sh" "$kernel" || skip "the client cannot be built"
(cd "$root" && cargo build --release --quiet -p flashyard-cli --bin flashyard) || exit 1
flashyard=$target/release/flashyard

control=$work/control-$$.sock
pid=
start() {
    $inside "$flashyard" serve "$scenario" --listen $server:4420 --listen $server:4421 --control "$control" "$@" \
        >"$work/server.log" 2>&1 &
    pid=$!
    for _ in $(seq 100); do
        "$flashyard" ctl "$control" status >/dev/null 2>&1 && return 0
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    cat "$work/server.log"
    return 1
}
stop() { kill -INT "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; pid=; }
ctl() { "$flashyard" ctl "$control" "$@" >>"$work/control.log" 2>&1; }
boot() { # SCRIPT ARGUMENT...
    local script=$1
    shift
    rm -rf "$work/out"
    TAP=tap0 ADDRESS=192.168.77.3 $inside timeout "${LIMIT:-300}" "$here/host/boot.sh" "$kernel" "$work/out" \
        "$here/guest/$script.sh" $server 4420 "$prefix${DRIVE:-0}" "$@"
}
started() { for _ in $(seq 300); do [ -e "$work/out/started" ] && return 0; sleep 0.2; done; return 1; }

case_identify() { start && boot identify; }
# All of `identify` again, and what was said on the wire is read by somebody else.
case_wire() {
    local capture=$work/wire.pcap tcpdump
    start || return 1
    tcpdump=$($inside "$here/host/wire.sh" begin br0 "$capture") || { echo "SKIPPED: tcpdump is missing"; return 0; }
    boot identify
    local said=$?
    "$here/host/wire.sh" check "$capture" "$tcpdump"
    case $? in
    0) rm -f "$capture" "$capture.log" ;;
    77) echo "SKIPPED: tshark is missing, nobody has read the capture" ;;
    *) return 1 ;;
    esac
    return $said
}
case_filesystems() { start && boot filesystems 32m; }
case_load() { start --pace off && boot load 2; }
case_reconnect() { start && boot reconnect; }
case_multipath() {
    start || return 1
    boot multipath 4421 &
    local client=$!
    sleep 1
    if started; then
        sleep 3
        ctl port $server:4421 off
        sleep 4
        ctl port $server:4421 on
    fi
    wait $client
}
case_auth() {
    local host=nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555
    local key controller
    key=$(nvme gen-dhchap-key --hmac=1 --nqn="$host")
    controller=$(nvme gen-dhchap-key --hmac=2 --nqn="${prefix}0")
    (umask 077 && printf '%s %s %s\n' "$host" "$key" "$controller" >"$work/keys")
    start --hosts "$work/keys" && boot auth "$key" "$controller" "$host"
}
# A drive is pulled and put back, again and again, at random, while the client verifies what it reads.
broken() { # COMMAND-TO-BREAK COMMAND-TO-MEND: every 1 to 5 seconds
    rm -f "$work/broken"
    (
        started || exit 1
        count=0
        while [ ! -e "$work/out/finished" ] && kill -0 "$pid" 2>/dev/null; do
            sleep $((1 + RANDOM % 4))
            eval "$1"
            count=$((count + 1))
            echo "$count" >"$work/broken"
            sleep 0.$((RANDOM % 10))
            eval "$2"
        done
    ) &
    breaker=$!
}
case_pull() {
    start || return 1
    broken 'ctl pull $((RANDOM % 4))' 'for drive in 0 1 2 3; do ctl insert $drive; done'
    boot verify "${SECONDS_OF_PULLS:-40}"
    local result=$?
    kill "$breaker" 2>/dev/null
    return $result
}
case_cuts() {
    start || return 1
    broken 'ctl power-cut' 'ctl power-restore'
    boot verify "${SECONDS_OF_CUTS:-40}"
    local result=$?
    kill "$breaker" 2>/dev/null
    return $result
}
# Databases on a drive that is pulled and put back meanwhile.
case_databases() {
    start || return 1
    broken 'ctl pull 0' 'ctl insert 0'
    MEMORY=1G LIMIT=600 boot databases
    local result=$?
    kill "$breaker" 2>/dev/null
    return $result
}
# The server is killed with SIGKILL and started again over the same data.
case_crash() {
    rm -rf "$work/data"
    start --data "$work/data" || return 1
    (
        started || exit 1
        for _ in 1 2 3 4 5; do
            sleep $((3 + RANDOM % 4))
            kill -KILL "$(cat "$work/pid")"
            sleep 0.3
            $inside "$flashyard" serve "$scenario" --listen $server:4420 --listen $server:4421 --control "$control" \
                --data "$work/data" >>"$work/server.log" 2>&1 &
            echo $! >"$work/pid"
        done
    ) &
    echo "$pid" >"$work/pid"
    boot verify 40
    local result=$?
    pid=$(cat "$work/pid")
    kill -INT "$pid" 2>/dev/null
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    return $result
}
case_soak() {
    LIMIT=$((${SOAK_SECONDS:-1800} + 600))
    start || return 1
    broken 'if [ $((RANDOM % 3)) = 0 ]; then ctl power-cut; else ctl pull $((RANDOM % 4)); fi' \
        'ctl power-restore; for drive in 0 1 2 3; do ctl insert $drive; done'
    boot verify "${SOAK_SECONDS:-1800}"
    local result=$?
    kill "$breaker" 2>/dev/null
    echo "-- $(cat "$work/broken") pulls and power cuts in ${SOAK_SECONDS:-1800} s"
    grep -E 'timeout request|I/O error|verify:' "$work/out/dmesg.log" "$work/out/console.log" | head -5
    return $result
}

"$here/host/net.sh" down $netns
"$here/host/net.sh" up $netns || skip "no network namespace can be made here"
trap 'stop; "$here/host/net.sh" down $netns' EXIT
cases=("$@")
[ ${#cases[@]} -gt 0 ] || cases=(identify wire filesystems load reconnect auth multipath pull cuts databases crash)
failed=()
for name in "${cases[@]}"; do
    echo "== $name"
    begun=$SECONDS
    if "case_$name"; then
        echo "== $name passed in $((SECONDS - begun)) s"
    else
        echo "== $name FAILED after $((SECONDS - begun)) s; the server said:"
        tail -20 "$work/server.log"
        failed+=("$name")
    fi
    stop
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
