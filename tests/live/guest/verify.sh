# Mixed fio with verification for a given time, while the host breaks things. Zero verification errors, zero hangs.
. "$(dirname "$0")/common.sh" "$@"
shift 3
seconds=${1:-60}
# What the client's kernel says, and once in a while how it is, for whoever looks for the cause of a failure.
dmesg -w >/run/out/dmesg.log 2>&1 &
while sleep 5; do cat /proc/uptime /sys/class/nvme/nvme*/state /proc/loadavg 2>/dev/null | paste -sd' '; done >>/run/out/state.log &
# Not io_uring: what it submits says that it must not wait, and when Linux sends that again by the path that came back, just while a
# queue is frozen, the program gets EAGAIN (seen with 6.1).
device=$(connect --reconnect-delay=1 --ctrl-loss-tmo=600 --keep-alive-tmo=5) || fail "connect"
touch /run/out/started
# Linux 6.12 sends SIGPIPE to the program whose request it was about to send when the connection ended.
trap '' PIPE
end=$((SECONDS + seconds)) round=0 verified=0
while [ $SECONDS -lt $end ]; do
    round=$((round + 1))
    left=$((end - SECONDS))
    timeout $((left + 300)) fio --name=verify --filename="$device" --allow_file_create=0 --direct=1 --ioengine=libaio --iodepth=16 --rw=randrw --rwmixread=30 \
        --bssplit=4k/60:16k/20:64k/20 --blockalign=4k --size=24m --offset=$(((round % 4) * 96))m --verify=crc32c --verify_backlog=512 \
        --randseed=$round --minimal >figures 2>&1 || { tail -20 figures; dmesg | tail -20; fail "round $round of the verification"; }
    # Every block that a round has written is read and compared in it.
    verified=$((verified + $(cut -d';' -f47 figures)))
    echo "$SECONDS s: round $round, $((verified >> 10)) MiB verified" >>/run/out/progress.log
done
touch /run/out/finished
say "$(grep -c 'starting error recovery' /run/out/dmesg.log) losses of the drive seen by the client," \
    "$(grep -c 'Successfully reconnected' /run/out/dmesg.log) times connected again"
say "$round rounds, $((verified >> 10)) MiB written and verified, no error"
disconnect
