#!/usr/bin/env bash
# The same fio jobs over NBD against our server, qemu-nbd and nbdkit, one after the other: a table.
# usage: nbd_compare.sh [SECONDS]     seconds for each job, 4 by default
#
# Ours runs without a clock (`--pace off`) over drives whose bytes are in memory; the others have a file in memory and
# nbdkit's memory plugin. All listen on a Unix socket. Needs fio with the nbd engine, qemu-nbd and nbdkit; ends with 77
# where fio is missing, and leaves out what else is missing.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
seconds=${1:-4}
size=256M
fio --enghelp=nbd >/dev/null 2>&1 || { echo "SKIPPED: fio has no nbd engine" >&2; exit 77; }
(cd "$root" && cargo build --release --quiet -p flashyard-cli --bin flashyard) || exit 1

work=$(mktemp -d -p "${XDG_RUNTIME_DIR:-/dev/shm}")
server=
end() { [ -z "$server" ] || { kill -INT "$server" 2>/dev/null; wait "$server" 2>/dev/null; server=; }; }
trap 'end; rm -rf "$work"' EXIT
ready() { for _ in $(seq 100); do [ -S "$1" ] && return 0; kill -0 "$server" 2>/dev/null || return 1; sleep 0.1; done; return 1; }

flashyard() {
    "$target/release/flashyard" serve "$root/scenarios/live/scenario.toml" --nbd "unix:$1" --pace off >"$work/log" 2>&1 &
    server=$!
    export_name=drive-0
}
qemu-nbd() {
    truncate -s $size "$work/disk"
    command qemu-nbd --persistent --shared=8 --cache=writeback --format=raw --socket="$1" "$work/disk" >"$work/log" 2>&1 &
    server=$!
    export_name=
}
nbdkit() {
    command nbdkit --foreground --unix "$1" memory $size >"$work/log" 2>&1 &
    server=$!
    export_name=
}

# A figure of fio's terse output, among whose lines the engine says something too.
measure() { # URI RW BLOCK DEPTH FIELD
    fio --name=job --ioengine=nbd --uri="$1" --rw="$2" --bs="$3" --iodepth="$4" --size=$size --time_based --runtime="$seconds" \
        --ramp_time=1 --minimal 2>"$work/fio.log" | grep '^3;' | cut -d';' -f"$5"
}

printf '%-12s %12s %12s %12s %14s %14s\n' server 'read d1' 'read d32' 'write d32' '128k read d8' '128k write d8'
printf '%-12s %12s %12s %12s %14s %14s\n' '' IOPS IOPS IOPS MiB/s MiB/s
for name in flashyard qemu-nbd nbdkit; do
    [ "$name" = flashyard ] || type -P "$name" >/dev/null || { echo "$name is missing"; continue; }
    socket=$work/$name.sock
    "$name" "$socket"
    ready "$socket" || { echo "$name does not start:"; cat "$work/log"; end; continue; }
    uri="nbd+unix:///$export_name?socket=$socket"
    # A drive in use: written ten times over, so that what follows reads what was written, and memory that is taken.
    fio --name=fill --ioengine=nbd --uri="$uri" --rw=write --bs=128k --iodepth=8 --size=$size --loops=10 --minimal >/dev/null 2>"$work/fio.log" ||
        { echo "$name: fio fails"; cat "$work/fio.log"; end; continue; }
    printf '%-12s %12s %12s %12s %14s %14s\n' "$name" "$(measure "$uri" randread 4k 1 8)" "$(measure "$uri" randread 4k 32 8)" \
        "$(measure "$uri" randwrite 4k 32 49)" "$(($(measure "$uri" read 128k 8 7) >> 10))" "$(($(measure "$uri" write 128k 8 48) >> 10))"
    end
done
