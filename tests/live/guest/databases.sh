# Databases on ext4 on a served drive, which is pulled and put back meanwhile: what they say was committed is there,
# also after the host has disconnected and connected again.
. "$(dirname "$0")/common.sh" "$@"
shift 3
seconds=${1:-10}
dmesg -w >/run/out/dmesg.log 2>&1 &
# A host that connects for the first time while the drive is away is refused, and does not try again by itself.
patiently() {
    for _ in $(seq 20); do
        device=$(connect --reconnect-delay=1 --ctrl-loss-tmo=600 --keep-alive-tmo=5 2>/dev/null) && return 0
        sleep 0.5
    done
    return 1
}
patiently || fail "connect"
mkfs.ext4 -q -F "$device" && mount "$device" /run/mount || fail "mkfs, mount"
again() { # unmounts, disconnects, and comes back
    umount /run/mount || fail "umount after $1"
    disconnect
    patiently || fail "connect after $1"
    mount "$device" /run/mount || fail "mount after $1"
}
touch /run/out/started

# SQLite: one transaction a row, synchronous; the number of rows is what was committed.
rows=0 database=/run/mount/rows.db
sqlite3 $database 'PRAGMA journal_mode=WAL; CREATE TABLE row(number INTEGER PRIMARY KEY, content BLOB, sum TEXT);' >/dev/null || fail "sqlite3"
end=$((SECONDS + seconds))
while [ $SECONDS -lt $end ] || [ $rows = 0 ]; do
    {
        echo 'PRAGMA synchronous=FULL;'
        for number in $(seq $((rows + 1)) $((rows + 100))); do
            echo "INSERT INTO row VALUES($number, zeroblob(512 + $number % 4000), '$number');"
        done
    } | sqlite3 $database || fail "sqlite3 after $rows rows"
    rows=$((rows + 100))
done
again sqlite3
[ "$(sqlite3 $database 'PRAGMA integrity_check; SELECT count(*) FROM row WHERE length(content) = 512 + number % 4000;' | paste -sd' ')" = "ok $rows" ] ||
    fail "sqlite3: not the $rows rows that were committed"
say "sqlite3: $rows transactions, all there, integrity ok"

# PostgreSQL: pgbench leaves one row of history for each transaction.
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as() { setpriv --reuid=postgres --regid=postgres --clear-groups env -C /run/mount/postgres LC_ALL=C "$@"; }
start_server() { as "$bin/pg_ctl" -D /run/mount/postgres/data -w -t 900 -l /run/mount/postgres/log -o '-k /dev/shm -h ""' start >/dev/null; }
mkdir -p /run/mount/postgres && chown postgres /run/mount/postgres
as "$bin/initdb" -A trust --no-sync --data-checksums -D /run/mount/postgres/data >/dev/null || fail "initdb"
start_server && as "$bin/createdb" -h /dev/shm bench && as "$bin/pgbench" -h /dev/shm -q -i -s 1 bench >/dev/null 2>&1 || fail "pgbench -i"
as "$bin/pgbench" -h /dev/shm -c 4 -T "$seconds" bench >/run/out/pgbench.log 2>&1 || { cat /run/out/pgbench.log; fail "pgbench"; }
done=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' /run/out/pgbench.log)
as "$bin/pg_ctl" -D /run/mount/postgres/data -w -m immediate stop >/dev/null || fail "stop"
again postgres
# Stopped without a checkpoint, it recovers from its log on the drive.
start_server || { tail -5 /run/mount/postgres/log; fail "postgres does not start again"; }
rows=$(as "$bin/psql" -h /dev/shm -At -c 'SELECT count(*) FROM pgbench_history' bench)
balances=$(as "$bin/psql" -h /dev/shm -At -c 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history)' bench)
as "$bin/pg_ctl" -D /run/mount/postgres/data -w -m fast stop >/dev/null
[ "$done" -gt 0 ] && [ "$rows" = "$done" ] && [ "$balances" = t ] || fail "postgres: $rows of $done transactions, balances agree: $balances"
as "$bin/pg_checksums" -D /run/mount/postgres/data --check >/dev/null || fail "postgres: a page with a wrong checksum"
say "postgres: $done transactions of 4 clients, all there after a stop without checkpoint, page checksums ok, $(sed -n 's/^tps = \([0-9.]*\).*/\1/p' /run/out/pgbench.log) a second"

# RocksDB: every value that is read is compared with its checksum.
bench() { db_bench --db=/run/mount/rocks --wal_dir=/run/mount/rocks --verify_checksum=1 --num=20000 --value_size=400 --seed=1 "$@" 2>/run/out/db_bench.err; }
bench --benchmarks=fillrandom,overwrite >/run/out/db_bench.log || { tail -5 /run/out/db_bench.err; fail "db_bench"; }
again db_bench
bench --benchmarks=verifychecksum,readrandom --use_existing_db=1 --reads=5000 >>/run/out/db_bench.log || fail "db_bench finds wrong data"
say "rocksdb: 40000 writes, files verified, $(sed -n 's/^readrandom.*(\(.*\) found).*/\1/p' /run/out/db_bench.log) found"
touch /run/out/finished
say "$(grep -c 'starting error recovery' /run/out/dmesg.log) losses of the drive meanwhile"
umount /run/mount
disconnect
