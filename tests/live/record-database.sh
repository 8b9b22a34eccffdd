#!/usr/bin/env bash
# Records the requests of a database on a served volume: sysbench against MariaDB on XFS, one thread, a phase after the other.
# The volume lies in memory; nbdfuse makes a file of it, and a loop device a disk of the file. Some minutes.
# usage: record-database.sh DIRECTORY [ROWS [SECONDS]]      ROWS of each of ten tables, 1000000; SECONDS of each phase, 20
#   DIRECTORY/record.csv     every request from the start of the server on (docs/traces.md, csv)
#   DIRECTORY/phases.txt     name, first and last microsecond of each phase, and the queries that it made
#   DIRECTORY/transport.txt  microseconds that the way of a lone read of 4 KiB to the server and back takes: mean, and one of a hundred at most
#   DIRECTORY/PHASE.csv      the first 12000 reads and writes from its third second on, with the time that the database thought before
#                            (crates/systems/server/src/database.rs)
#
# Needs root, loop devices, /dev/fuse, and the packages mariadb-server sysbench xfsprogs libnbd-bin fio.
set -euo pipefail

out=${1:?a directory for the recording} rows=${2:-1000000} seconds=${3:-20}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
flashyard=${FLASHYARD_PROGRAM:-${CARGO_TARGET_DIR:-$root/target}/release/flashyard}
for program in mariadbd mariadb-install-db sysbench mkfs.xfs nbdfuse fio losetup "$flashyard"; do
    type -P "$program" >/dev/null || { echo "$program is missing" >&2; exit 1; }
done
mkdir -p "$out"
work=$(mktemp -d)
loop=
cleanup() {
    [ ! -S "$work/sql" ] || mariadb-admin --no-defaults -S "$work/sql" -u root shutdown 2>/dev/null || true
    for _ in $(seq 50); do umount "$work/mount" 2>/dev/null && break; mountpoint -q "$work/mount" || break; sleep 0.2; done
    [ -z "$loop" ] || losetup -d "$loop" || true
    umount "$work/fuse/nbd" 2>/dev/null || fusermount3 -u "$work/disk" 2>/dev/null || true
    [ -z "${server:-}" ] || { kill -INT "$server" 2>/dev/null; wait "$server" 2>/dev/null; } || true
    rm -rf "$work"
}
trap cleanup EXIT

printf '[[volume]]\nname = "database"\nback = { memory = "%d MiB" }\n' $((rows * 10 / 2200 + 1024)) >"$work/volumes.toml"
"$flashyard" serve "$work/volumes.toml" --nbd "unix:$work/nbd" --record "$out/record.csv" --force >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 100); do [ -S "$work/nbd" ] && break; sleep 0.1; done
mkdir "$work/mount"
touch "$work/disk"
nbdfuse "$work/disk" "nbd+unix:///database?socket=$work/nbd" &
for _ in $(seq 100); do [ -s "$work/disk" ] && break; sleep 0.1; done
# Requests go to the file as they are: no copy of the disk in the page cache.
loop=$(losetup --find --show --direct-io=on --sector-size 4096 "$work/disk")

# What the way to the server takes, which belongs to no database.
now() { echo $((($(date +%s%N) - began) / 1000)); }
fio --name=alone --filename="$loop" --direct=1 --rw=randread --bs=4k --iodepth=1 --runtime=3 --time_based --output-format=json >"$work/fio.json"
sleep 0.2
python3 - "$work/fio.json" "$out/record.csv" >"$out/transport.txt" <<'P'
import json, statistics, sys
read = json.load(open(sys.argv[1]))["jobs"][0]["read"]
rows = [line.rstrip().split(",") for line in open(sys.argv[2])][1:-1]
own = statistics.mean(float(row[5]) for row in rows if row[1] == "r" and row[3] == "4096")
print(*(f"{ns / 1e3 - own:.1f}" for ns in (read["lat_ns"]["mean"], read["clat_ns"]["percentile"]["1.000000"])))
P
echo "the way to the server and back takes (mean, 1 %): $(cat "$out/transport.txt") us"

mkfs.xfs -q -f -K "$loop"
mount "$loop" "$work/mount"
# [A] a pool far smaller than the tables, as one of the usual size is against 240 GB; direct as the paper's fio is.
cat >"$work/my.cnf" <<I
[mariadbd]
datadir=$work/mount/data
socket=$work/sql
pid-file=$work/pid
skip-networking
user=root
innodb_buffer_pool_size=8M
innodb_log_file_size=256M
innodb_flush_method=O_DIRECT
innodb_flush_log_at_trx_commit=1
I
chmod 755 "$work"
mariadb-install-db --defaults-file="$work/my.cnf" --auth-root-authentication-method=normal --skip-test-db >"$work/install.log" 2>&1
mariadbd --defaults-file="$work/my.cnf" --innodb_buffer_pool_size=1G >"$work/load.log" 2>&1 &
for _ in $(seq 300); do [ -S "$work/sql" ] && break; sleep 0.1; done
mariadb --no-defaults -S "$work/sql" -u root -e 'CREATE DATABASE sbtest'
options=(--db-driver=mysql --mysql-socket="$work/sql" --mysql-user=root --tables=10 --table-size="$rows" --threads=1 --rand-seed=1)
sysbench oltp_read_only "${options[@]}" --threads=2 prepare >"$work/prepare.log"
# The pool of the measurement begins empty.
mariadb-admin --no-defaults -S "$work/sql" -u root shutdown
for _ in $(seq 300); do [ -S "$work/sql" ] || break; sleep 0.1; done
mariadbd --defaults-file="$work/my.cnf" >"$work/database.log" 2>&1 &
for _ in $(seq 300); do [ -S "$work/sql" ] && break; sleep 0.1; done
sleep 1

: >"$out/phases.txt"
for phase in oltp_read_only oltp_write_only oltp_read_write; do
    sync
    sleep 1
    # The server's clock is that of its record: the last row tells where it stands.
    begin=$(tail -n 1 "$out/record.csv" | cut -d, -f1)
    sysbench $phase "${options[@]}" --time="$seconds" run >"$work/$phase.log"
    end=$(tail -n 1 "$out/record.csv" | cut -d, -f1)
    queries=$(sed -n 's/^ *queries: *\([0-9]*\).*/\1/p' "$work/$phase.log")
    echo "$phase $begin $end $queries" | tee -a "$out/phases.txt"
done

# A request that came sooner after an answer than the way there takes did not wait for it: it belongs to the same group. Otherwise
# the database has thought, and the way takes its part of the gap. Flushes are waited for, and leave no row.
python3 - "$out" <<'P'
import sys
out = sys.argv[1]
mean, least = (float(number) for number in open(f"{out}/transport.txt").read().split())
rows = [line.rstrip().split(",") for line in open(f"{out}/record.csv")][1:]
rows = [(float(at), letter, int(offset), int(size), float(took)) for at, letter, offset, size, _, took in rows]
for line in open(f"{out}/phases.txt"):
    name, begin, end, _ = line.split()
    phase = [row for row in rows if float(begin) + 2e6 < row[0] <= float(end)]
    thought, answered, written = 0.0, None, []
    for at, letter, offset, size, took in phase:
        if answered is not None and at - answered >= least:
            thought += max(1.0, at - answered - mean)
        answered = max(answered or 0, at + took)
        if letter in "rw":
            written.append(f"{round(thought)},{letter},{offset // 4096},{-(-size // 4096)}")
    with open(f"{out}/{name}.csv", "w") as file:
        print("time_us,op,offset_4k,size_4k", *written[:12000], sep="\n", file=file)
    print(f"{name}: {len(phase)} rows, {len(written[:12000])} kept, {sum(1 for row in phase if row[1] == 'f')} flushes")
P
