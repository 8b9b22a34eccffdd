#!/usr/bin/env bash
# Real clients against `flashyard serve`: the NVMe/TCP host of Linux, in kernels as the distribution ships them, emulated so
# that any processor runs them, over a network of its own.
# usage: run.sh [CASE]...     all of $every below when none is named; `soak` only when it is
# environment:
#   FLASHYARD_PROGRAM  the program to test; without it this tree's, which is built first
#   PROFILE            how it is built: release (without it), quick or dev
#   KERNEL             stable (without it) or backports: the kernel of the client; `auth` takes one that can
#   SOAK_SECONDS       of `soak`, 1800
#
# Needs root, for the network, and what `packages.sh` installs. What is missing is named, and is a failure.
set -uo pipefail

every="connect-all vhost-user vhost-volume identify ranges filesystems load reconnect auth multipath hosts anywhere controls pull cuts databases crash zones protection namespaces"
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
work=$target/live-clients
netns=flashyard-live-$$
server=192.168.77.1
inside="ip netns exec $netns"
prefix=nqn.2026-11.io.flashyard:drive-
scenario=$root/scenarios/live/scenario.toml
drives=$(sed -n 's/^drives = \([0-9]*\).*/\1/p' "$scenario")
control=$work/control-$$.sock
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# Names what the cases need and is not there.
missing() { # CASE...
    local name pair
    for pair in qemu-system-x86_64=qemu-system-x86 busybox=busybox-static cpio=cpio modprobe=kmod xz=xz-utils zstd=zstd ip=iproute2 nvme=nvme-cli; do
        program "$pair"
    done
    for name; do
        case $name in connect-all | vhost-user | vhost-volume | anywhere | ranges | auth | namespaces | protection) ;; *) program fio=fio ;; esac
        case $name in
        identify) program tcpdump=tcpdump && program tshark=tshark ;;
        vhost-user | vhost-volume | namespaces | protection) program mkfs.ext4=e2fsprogs ;;
        filesystems) program mkfs.ext4=e2fsprogs && program mkfs.xfs=xfsprogs && program mkfs.f2fs=f2fs-tools ;;
        databases)
            program mkfs.ext4=e2fsprogs && program sqlite3=sqlite3 && program db_bench=rocksdb-tools
            ls -d /usr/lib/postgresql/*/bin >/dev/null 2>&1 || echo "postgres (package postgresql)"
            ;;
        esac
    done | sort -u
    [ "$(id -u)" -eq 0 ] || echo "the rights of root, for the network of the clients"
    [ -c /dev/net/tun ] || echo "/dev/net/tun, for the network of the clients"
}
program() { type -P "${1%=*}" >/dev/null || echo "${1%=*} (package ${1#*=})"; }

# The network is the test's own: any host in it may enter.
serve() { # OPTION...: in the background, its process in $pid
    $inside "$flashyard" serve "$scenario" --control "$control" --insecure "$@" >>"$work/server.log" 2>&1 &
    pid=$!
}
start() { # OPTION...: on two ports, and waits until it serves
    rm -rf "$work/out" "$work/other"
    : >"$work/server.log"
    : >"$work/control.log"
    case " $* " in *" --listen "*) ;; *) set -- --listen $server:4420 --listen $server:4421 "$@" ;; esac
    serve "$@"
    for _ in $(seq 300); do
        "$flashyard" ctl "$control" status >/dev/null 2>&1 && return 0
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    echo "the server does not serve"
    return 1
}
stop() { [ -z "${pid:-}" ] || { kill -INT "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; pid=; }; }
ctl() { "$flashyard" ctl "$control" "$@" >>"$work/control.log" 2>&1; }

# A kernel is fetched when a case first asks for it.
boot() { # SCRIPT ARGUMENT...      environment: KERNEL, ADDRESS, TAP, OUT, DRIVE, LIMIT
    local script=$1 kernel=${KERNEL:-stable}
    shift
    "$here/host/kernel.sh" "$kernel" "$work/$kernel" || return 1
    TAP=${TAP:-tap0} ADDRESS=${ADDRESS:-192.168.77.3} $inside "$here/host/boot.sh" "$work/$kernel" "$work/${OUT:-out}" \
        "$here/guest/$script.sh" $server 4420 "$prefix${DRIVE:-0}" "$@"
}
started() { for _ in $(seq 4500); do [ -e "$work/out/started" ] && return 0; sleep 0.2; done; return 1; }

case_connect-all() { start --listen $server:4420 && boot connect-all "$drives"; }
# A guest formats a disk of vhost-user-blk, and puts a system on it; another one boots from it, after a restart of the server.
case_vhost-user() {
    local data=$work/vhost-data socket=$work/vhost-$$.sock
    rm -rf "$data"
    start --pace off --data "$data" --vhost-user-blk "$socket" || return 1
    DISK=$socket-0 boot vhost-user || return 1
    stop
    start --pace off --data "$data" --vhost-user-blk "$socket" || return 1
    DISK=$socket-0 ROOT=vda boot vhost-user || return 1
    stop
    rm -rf "$data"
}
# The same through a LATTE: a front end of memory, a back end in a file that is slower than it is.
case_vhost-volume() {
    local socket=$work/vhost-$$.sock description=$work/volumes.toml image=$work/volume.img
    rm -f "$image"
    printf '[[volume]]\nname = "v0"\nservice = "latte"\nfront = { memory = "256 MiB" }\n' >"$description"
    printf 'back = { file = "%s", size = "1 GiB", latency = "200 us" }\n' "$image" >>"$description"
    serve_volumes "$description" "$socket" && DISK=$socket boot vhost-user || return 1
    stop
    serve_volumes "$description" "$socket" && DISK=$socket ROOT=vda boot vhost-user || return 1
    stop
    rm -f "$image"
}
serve_volumes() { # DESCRIPTION SOCKET: in the background, its process in $pid
    rm -rf "$work/out"
    $inside "$flashyard" serve "$1" --vhost-user-blk "$2" >"$work/server.log" 2>&1 &
    pid=$!
    for _ in $(seq 100); do
        [ -S "$2" ] && return 0
        sleep 0.1
    done
    echo "the server does not serve"
    return 1
}
# The server listens everywhere; what discovery names is where the client came to.
case_anywhere() { start --listen 0.0.0.0:4420 && boot connect-all "$drives"; }
# What is said on the wire is read by somebody else.
case_identify() {
    local capture=$work/wire.pcap tcpdump
    start || return 1
    tcpdump=$($inside "$here/host/wire.sh" begin br0 "$capture") || { cat "$capture.log"; return 1; }
    boot identify
    local said=$?
    "$here/host/wire.sh" check "$capture" "$tcpdump" || return 1
    [ $said -ne 0 ] || rm -f "$capture" "$capture.log"
    return $said
}
case_ranges() { start && boot ranges; }
# A drive that its host divides, and whose first namespace gets another size for each file by which the host asks for one.
case_namespaces() {
    start --pace off || return 1
    (
        for size in 67108864 16777216 33554432; do
            for _ in $(seq 900); do
                [ ! -e "$work/out/resize-$size" ] || break
                sleep 0.2
            done
            ctl resize drive-0 $size
        done
    ) &
    local resizer=$! result
    boot namespaces
    result=$?
    kill "$resizer" 2>/dev/null
    wait "$resizer" 2>/dev/null
    [ $result -eq 0 ] || cat "$work/control.log"
    return $result
}

# Drives whose blocks carry protection information, which the controller makes and takes off.
case_protection() { start --pace off --set serve.protection=type-1 && boot protection; }
# Drives with zones of 16 MiB, 12 of which can be written.
case_zones() {
    start --pace off --set 'serve.zones.size=16 MiB' --set 'serve.zones.capacity=12 MiB' --set serve.zones.open_max=4 \
        --set serve.zones.active_max=6 && boot zones 16384 12288
}
# Without a clock: each file system deallocates the drive three times, which takes a drive twelve seconds.
case_filesystems() { start --pace off && boot filesystems 4m; }
case_load() { start --pace off && boot load 2; }
case_reconnect() { start && boot reconnect; }
case_auth() {
    local host=nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555
    local key controller
    "$here/host/kernel.sh" stable "$work/stable" || return 1
    grep -qE '^CONFIG_NVME_(HOST_)?AUTH=y' "$work/stable/config" || local KERNEL=backports
    key=$(nvme gen-dhchap-key --hmac=1 --nqn="$host")
    controller=$(nvme gen-dhchap-key --hmac=2 --nqn="${prefix}0")
    (umask 077 && rm -f "$work/keys" && printf '%s %s %s\n' "$host" "$key" "$controller" >"$work/keys")
    start --hosts "$work/keys" && boot auth "$key" "$controller" "$host"
}
# Two clients write to one drive at once, and each reads what the other has written.
case_hosts() {
    start || return 1
    TAP=tap1 ADDRESS=192.168.77.4 OUT=other boot hosts 2 1 >"$work/other.log" &
    local other=$!
    boot hosts 1 2
    local result=$?
    wait $other || { result=1; echo "the second client:"; cat "$work/other.log"; }
    return $result
}

# Something is broken and mended again and again, at random, from when the client says that it has started until it says that it
# has finished. $count is how often it was broken before.
broken() { # COMMAND-TO-BREAK COMMAND-TO-MEND
    (
        started || exit 1
        count=0
        while [ ! -e "$work/out/finished" ] && kill -0 "$pid" 2>/dev/null; do
            sleep $((1 + RANDOM % 4))
            eval "$1"
            count=$((count + 1))
            echo "$count" >"$work/out/broken"
            sleep 0.$((RANDOM % 10))
            eval "$2"
        done
    ) &
    breaker=$!
}
through() { # SCRIPT ARGUMENT...: the client lives through what `broken` does, and has seen some of it
    boot "$@"
    local result=$?
    kill "$breaker" 2>/dev/null
    wait "$breaker" 2>/dev/null
    echo "-- broken $(cat "$work/out/broken" 2>/dev/null || echo 0) times"
    grep -q 'starting error recovery' "$work/out/dmesg.log" || { echo "the client has lost nothing: this has tested nothing"; result=1; }
    return $result
}
# Every other time it is the client's drive.
pull='ctl pull $((count % 2 * (RANDOM % 4)))'
insert='for drive in 0 1 2 3; do ctl insert $drive; done'
case_multipath() {
    start || return 1
    (
        started || exit 1
        sleep 3
        ctl port $server:4421 off
        echo 1 >"$work/out/broken"
        sleep 4
        ctl port $server:4421 on
    ) &
    breaker=$!
    through multipath 4421
}
case_pull() { start && broken "$pull" "$insert" && through verify 40; }
case_cuts() { start && broken 'ctl power-cut' 'ctl power-restore' && through verify 40; }
case_databases() { start && broken 'ctl pull 0' 'ctl insert 0' && LIMIT=1500 through databases; }
case_soak() {
    LIMIT=$((${SOAK_SECONDS:-1800} + 600))
    start || return 1
    broken "if [ \$((RANDOM % 3)) = 0 ]; then ctl power-cut; else $pull; fi" "ctl power-restore; $insert"
    through verify "${SOAK_SECONDS:-1800}"
    local result=$?
    grep -hE 'timeout request|I/O error|verify:' "$work/out/dmesg.log" "$work/out/console.log" | head -5
    return $result
}
# Controls come as fast as they are answered, beside a journal, which then tells the same again.
case_controls() {
    rm -f "$work/journal"
    start --journal "$work/journal" || return 1
    (
        started || exit 1
        for count in $(seq 1000); do
            ctl harvest off && ctl harvest on || { echo "control $count was not answered" >"$work/out/unanswered"; break; }
            echo "$count" >"$work/out/broken"
            [ ! -e "$work/out/finished" ] || break
        done
    ) &
    breaker=$!
    boot verify 20
    local result=$?
    wait $breaker
    stop
    echo "-- lending taken and given back $(cat "$work/out/broken") times"
    [ ! -e "$work/out/unanswered" ] || { cat "$work/out/unanswered"; return 1; }
    "$flashyard" replay "$work/journal" || return 1
    rm -f "$work/journal"
    return $result
}
# The server is killed with SIGKILL and started again over the same data.
case_crash() {
    local ports="--listen $server:4420 --listen $server:4421"
    rm -rf "$work/data"
    start $ports --data "$work/data" || return 1
    echo "$pid" >"$work/pid"
    (
        started || exit 1
        for count in 1 2 3 4 5; do
            sleep $((3 + RANDOM % 4))
            [ ! -e "$work/out/finished" ] || break
            kill -KILL "$(cat "$work/pid")"
            sleep 0.3
            serve $ports --data "$work/data"
            echo "$pid" >"$work/pid"
            echo "$count" >"$work/out/broken"
        done
    ) &
    breaker=$!
    through verify 40
    local result=$?
    pid=$(cat "$work/pid")
    kill -INT "$pid" 2>/dev/null
    for _ in $(seq 300); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    rm -rf "$work/data"
    return $result
}

[ $# -gt 0 ] || set -- $every
for name; do
    declare -F "case_$name" >/dev/null || { echo "'$name' is no case: $every soak" >&2; exit 2; }
done
lacks=$(missing "$@")
if [ -n "$lacks" ]; then
    echo "$lacks" | sed 's/^/missing: /' >&2
    echo "no real client was run; tests/live/packages.sh installs the packages" >&2
    exit 1
fi
mkdir -p "$work"
exec 9>"$work/lock"
# What an earlier run has broken off may hold the lock for some seconds yet.
flock -w 30 9 || { echo "another run of these tests uses $work" >&2; exit 1; }
profile=${PROFILE:-release}
flashyard=${FLASHYARD_PROGRAM:-$target/${profile/#dev/debug}/flashyard}
[ -n "${FLASHYARD_PROGRAM:-}" ] ||
    (cd "$root" && cargo build --profile "$profile" --quiet -p flashyard-cli --bin flashyard) || exit 1

"$here/host/net.sh" up $netns || { echo "no network namespace can be made here" >&2; exit 1; }
trap 'stop; "$here/host/net.sh" down $netns' EXIT
failed=()
for name; do
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
