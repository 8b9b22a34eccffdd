# Mixed fio with verification for a given time, while the host breaks things. Zero verification errors, zero hangs.
. "$(dirname "$0")/common.sh" "$@"
shift 3
seconds=${1:-60}
echo 600 >/sys/module/nvme_core/parameters/io_timeout 2>/dev/null
device=$(connect --reconnect-delay=1 --ctrl-loss-tmo=600 --keep-alive-tmo=5) || fail "connect"
touch /run/out/started
end=$((SECONDS + seconds)) round=0
while [ $SECONDS -lt $end ]; do
    round=$((round + 1))
    left=$((end - SECONDS))
    timeout $((left + 300)) fio --name=verify --filename="$device" --direct=1 --ioengine=io_uring --iodepth=16 --rw=randrw --rwmixread=30 \
        --bssplit=4k/60:16k/20:64k/20 --blockalign=4k --size=96m --offset=$(((round % 4) * 96))m --verify=crc32c --verify_backlog=512 \
        --randseed=$round --minimal >figures 2>&1 || { tail -20 figures; dmesg | tail -20; fail "round $round of the verification"; }
done
touch /run/out/finished
dmesg | grep -c 'Reconnecting' | sed 's/^/-- reconnects seen by the client: /'
say "$round rounds verified"
disconnect
