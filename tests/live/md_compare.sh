#!/usr/bin/env bash
# The same fio jobs on an array of ours and on one of Linux md, over files of one size in memory, one after the other: a table of medians.
# usage: md_compare.sh [ROUNDS] [SECONDS]     5 rounds and 2 s a job by default; FLASHYARD_PROGRAM is the program, without it this tree's release build
#
# md runs in User-Mode Linux (Debian's user-mode-linux), with the files as its disks (ubd) and fio beside it. Ours is a server, and fio comes to it over
# NBD on a Unix socket. Needs root, linux.uml, mdadm, busybox and fio with the nbd engine; ends with 77 where one is missing.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
rounds=${1:-5} seconds=${2:-2}
mib=256
for need in linux.uml=user-mode-linux mdadm=mdadm busybox=busybox-static fio=fio; do
    PATH=$PATH:/sbin:/usr/sbin type -P "${need%=*}" >/dev/null || { echo "SKIPPED: ${need%=*} is missing (package ${need#*=})" >&2; exit 77; }
done
fio --enghelp=nbd >/dev/null 2>&1 || { echo "SKIPPED: fio has no nbd engine" >&2; exit 77; }
flashyard=${FLASHYARD_PROGRAM:-$target/release/flashyard}
[ -n "${FLASHYARD_PROGRAM:-}" ] ||
    (cd "$root" && cargo build --release --quiet -p flashyard-cli --bin flashyard) || exit 1

work=$(mktemp -d -p /dev/shm)
server=
end() { [ -z "$server" ] || { kill -INT "$server" 2>/dev/null; wait "$server" 2>/dev/null; server=; }; rm -f "$work"/leg-* "$work"/*.sock; }
trap 'end; rm -rf "$work"' EXIT

guest() { # ARGUMENT...: boots it, and prints what it says of jobs
    timeout 120 linux.uml mem=1G rootfstype=hostfs rootflags=/ ro init="$here/guest/md.sh" quiet con=null con0=null,fd:1 ssl=null \
        seconds="$seconds" "$@" </dev/null 2>>"$work/uml.log" | tr -d '\r' | grep -aE '^(JOB|POLICY)'
}
md() { # LEVEL DEVICES FULL POLICY
    local disks=() letters=(a b c d e f) number
    for number in $(seq 0 $(($2 - 1))); do
        truncate -s ${mib}M "$work/leg-$number"
        disks+=("ubd${letters[number]}=$work/leg-$number")
    done
    guest level="$1" devices="$2" full="$3" policy="$4" "${disks[@]}"
    end
}
serve() { # DEVICES PARITY JOURNAL OPTION...
    local legs="" number
    for number in $(seq 0 $(($1 - 1))); do legs+="{ file = \"$work/leg-$number\", size = \"$mib MiB\" }, "; done
    printf '[[volume]]\nname = "v"\nservice = "array"\nparity = %s\njournal = "%s"\nlegs = [%s]\n' "$2" "$3" "${legs%, }" >"$work/v.toml"
    "$flashyard" serve "$work/v.toml" --listen 127.0.0.1:0 "${@:4}" >"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 100); do [ -S "$work/v.sock" ] && return 0; sleep 0.1; done
    cat "$work/server.log" >&2
    return 1
}
array() { # LEVEL DEVICES FULL JOURNAL
    serve "$2" $(($1 - 4)) "$4" --nbd "unix:$work/v.sock" || return
    local uri="nbd+unix:///v?socket=$work/v.sock"
    run() { fio --name=job --ioengine=nbd --uri="$uri" --minimal "$@" 2>/dev/null | grep '^3;' | cut -d';' -f48; }
    run --rw=write --bs=1m --iodepth=4 >/dev/null
    timed() { run --iodepth=16 --runtime="$seconds" --ramp_time=1 --time_based "$@"; }
    echo "JOB sequential-192 $(timed --rw=write --bs=192k)"
    echo "JOB full-stripes $(timed --rw=write --bs="$3k")"
    echo "JOB random-64 $(timed --rw=randwrite --bs=64k)"
    end
}

for round in $(seq "$rounds"); do
    for shape in "5 3 128" "6 6 256"; do
        for system in md:resync md:ppl array:none array:partial-parity array:whole; do
            case $shape:$system in 6*:ppl | 6*:partial-parity) continue ;; esac
            # shellcheck disable=SC2086
            ${system%:*} $shape "${system#*:}" | sed "s/^/${shape%% *} $system /" >>"$work/figures"
        done
    done
    echo "round $round of $rounds" >&2
done
sed -n 's/.* POLICY //p' "$work/figures" | sort | uniq -c | sed 's/^/# md: /'
# Medians, in MiB/s, with the least and the most.
printf '%-7s %-22s %22s %22s %22s\n' level system 'sequential 192 KiB' 'sequential stripes' 'random 64 KiB'
for level in 5 6; do
    for system in md:resync md:ppl array:none array:partial-parity array:whole; do
        grep -q "^$level $system JOB" "$work/figures" || continue
        row=()
        for job in sequential-192 full-stripes random-64; do
            row+=("$(awk -v k="$level $system JOB $job " 'index($0, k) == 1 { print $NF }' "$work/figures" | sort -n | awk '
                { value[NR] = $1 / 1024 }
                END { printf "%.0f (%.0f to %.0f)", value[int((NR + 1) / 2)], value[1], value[NR] }')")
        done
        printf 'RAID-%-2s %-22s %22s %22s %22s\n' "$level" "$system" "${row[@]}"
    done
done
