#!/usr/bin/env bash
# A volume mounted through FUSE on a drive of a served box, while programs write to it: it is shrunk by remap by hand,
# then a manager beside the drive shrinks it as superblocks are retired. Everything written is compared.
# usage: volume.sh      environment: FLASHYARD_PROGRAM, the program to test; without it this tree's, which is built first
#
# Needs root, /dev/fuse and what packages.sh installs. What is missing is named, and is a failure.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
profile=${PROFILE:-release}
for need in fio=fio sqlite3=sqlite3 fusermount3=fuse3; do
    type -P "${need%=*}" >/dev/null && continue
    echo "missing: ${need%=*} (package ${need#*=}); tests/live/packages.sh installs it" >&2
    exit 1
done
[ -w /dev/fuse ] && [ "$(id -u)" = 0 ] || { echo "missing: the rights of root, and /dev/fuse, to mount" >&2; exit 1; }
flashyard=${FLASHYARD_PROGRAM:-$target/${profile/#dev/debug}/flashyard}
[ -n "${FLASHYARD_PROGRAM:-}" ] ||
    (cd "$root" && cargo build --quiet ${profile:+--profile "${profile/debug/dev}"} -p flashyard-cli --bin flashyard) || exit 1

work=$(mktemp -d -p /dev/shm)
mount=$work/mount
mkdir "$mount"
pids=()
end() {
    for pid in "${pids[@]:1}"; do kill "$pid" 2>/dev/null; done
    mountpoint -q "$mount" && fusermount3 -u -z "$mount"
    [ ${#pids[@]} -eq 0 ] || { kill -INT "${pids[0]}" 2>/dev/null; wait "${pids[0]}" 2>/dev/null; }
    rm -rf "$work"
}
trap end EXIT
fail() { echo "FAILED: $*" >&2; tail -n 20 "$work"/*.log >&2; exit 1; }
soon() { for _ in $(seq 150); do "$@" 2>/dev/null && return 0; sleep 0.1; done; return 1; }

# Drives of 256 superblocks of 1 MiB, 192 MiB exported, made for 300 erases: at 82 of them reads need two retries.
"$flashyard" serve "$root/scenarios/faults/scenario.toml" --pace off --listen 127.0.0.1:4477 --control "$work/box" \
    --data "$work/data" --set drive.filled=0 --set drive.over_provisioning=0.25 --set drive.wear.endurance=300 \
    --set drive.wear.erases=82 --set drive.allocation=wear-focusing >"$work/serve.log" 2>&1 &
pids+=($!)
soon test -S "$work/box" || fail "the box does not serve"
drive=tcp:127.0.0.1:4477/nqn.2026-11.io.flashyard:drive-0
"$flashyard" cvfs mkfs "$drive" --segment-blocks 64 || fail mkfs
"$flashyard" cvfs mount "$drive" "$mount" >"$work/mount.log" 2>&1 &
pids+=($!)
soon mountpoint -q "$mount" || fail "no mount"

echo "== shrunk by hand while fio and sqlite write"
cp -r "$root/crates/pure" "$mount/sources"
fio --name=verify --directory="$mount" --size=24m --rw=randwrite --bs=16k --verify=crc32c --do_verify=1 --verify_fatal=1 \
    --fsync=64 --loops=6 --aux-path="$work" --output="$work/fio.log" &
fio=$!
(
    for round in $(seq 40); do
        sqlite3 "$mount/base" "create table if not exists t(a integer, b text);
            with recursive n(i) as (select 1 union all select i+1 from n where i < 500)
            insert into t select i, hex(randomblob(40)) from n;" || exit 1
    done
) >"$work/sqlite.log" 2>&1 &
sqlite=$!
for size in 180MiB 168MiB 156MiB; do
    sleep 1
    "$flashyard" cvfs shrink "$mount" $size --method remap || fail "shrink to $size"
done
wait $fio || fail "fio found something else"
wait $sqlite || fail "sqlite"
[ "$(sqlite3 "$mount/base" 'pragma integrity_check; select count(*), sum(a) from t;' | tr '\n' ' ')" = "ok 20000|5010000 " ] ||
    fail "the data base is not what was written"
diff -r "$root/crates/pure" "$mount/sources" || fail "the sources differ"

echo "== managed: no read is to need a third retry"
"$flashyard" cvfs manage "$mount" --drive "$drive" --performance 0.8 --period 0.05 >"$work/manage.log" 2>&1 &
pids+=($!)
before=$(stat -f -c %b "$mount")
for round in $(seq 400); do
    dd if=/dev/urandom of="$mount/hot" bs=1M count=8 conv=fsync status=none || fail "round $round: a write"
    cp "$mount/hot" "$work/hot"
    cmp "$work/hot" "$mount/hot" || fail "round $round: it reads something else"
    [ "$(stat -f -c %b "$mount")" -lt $((before * 5 / 6)) ] && break
done
cat "$work/manage.log"
grep -q shrunk "$work/manage.log" || fail "nothing was retired in $round rounds"
diff -r "$root/crates/pure" "$mount/sources" || fail "the sources differ"
[ "$(sqlite3 "$mount/base" 'pragma integrity_check;')" = ok ] || fail "the data base"
"$flashyard" cvfs info "$mount" | sed -n 1,12p
kill "${pids[2]}"
fusermount3 -u "$mount" || fail unmount
wait "${pids[1]}"
"$flashyard" cvfs fsck "$drive" || fail fsck
echo "PASSED"
