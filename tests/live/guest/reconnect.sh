# Disconnect and connect again while requests are under way; then the drive is as good as before.
. "$(dirname "$0")/common.sh" "$@"
shift 3
for round in 1 2 3 4 5; do
    device=$(connect) || fail "connect in round $round"
    fio --name=load --filename="$device" --allow_file_create=0 --direct=1 --ioengine=io_uring --iodepth=32 --rw=randrw --bs=4k --size=64m --time_based \
        --runtime=20 --minimal >/dev/null 2>&1 &
    sleep 0.7
    disconnect || fail "disconnect in round $round"
    wait
done
device=$(connect) || fail "connect after all"
fio --name=verify --filename="$device" --allow_file_create=0 --direct=1 --ioengine=io_uring --iodepth=16 --rw=randwrite --bs=4k --size=32m --verify=crc32c \
    --minimal >figures || { cat figures; fail "verification after all"; }
disconnect
say "five times disconnected under load"
