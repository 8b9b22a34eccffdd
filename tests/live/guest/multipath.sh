# Two paths to one drive; the host takes one away under load and gives it back.
. "$(dirname "$0")/common.sh" "$@"
shift 3
second=$1
dmesg -w >/run/out/dmesg.log 2>&1 &
[ "$(cat /sys/module/nvme_core/parameters/multipath 2>/dev/null)" = Y ] || fail "the client has no native multipath"
options="-t tcp -a $address -n $nqn --reconnect-delay=1 --ctrl-loss-tmo=60 --keep-alive-tmo=5"
device=$(connect --reconnect-delay=1 --ctrl-loss-tmo=60 --keep-alive-tmo=5) || fail "first path"
nvme connect $options -s "$second" >/dev/null || fail "second path"
sleep 1
[ "$(nvme list-subsys "$device" | grep -c live)" = 2 ] || { nvme list-subsys; fail "two live paths expected"; }
touch /run/out/started
fio --name=verify --filename="$device" --allow_file_create=0 --direct=1 --ioengine=libaio --iodepth=16 --rw=randrw --bs=4k --size=64m --time_based --runtime=12 \
    --verify=crc32c --verify_backlog=256 --minimal >figures || { tail -5 figures; dmesg | tail; fail "verification with one path removed"; }
for _ in $(seq 100); do [ "$(nvme list-subsys "$device" | grep -c live)" = 2 ] && break; sleep 0.2; done
[ "$(nvme list-subsys "$device" | grep -c live)" = 2 ] || { nvme list-subsys; fail "the path has not come back"; }
disconnect
say "one of two paths removed and given back under load, no error"
