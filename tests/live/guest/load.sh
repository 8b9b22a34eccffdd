# fio through the block device and through the character device, reads and a mix, with the host's own figures.
. "$(dirname "$0")/common.sh" "$@"
shift 3
seconds=${1:-3}
device=$(connect) || fail "connect"
fio="--filename=$device --direct=1 --ioengine=io_uring --runtime=$seconds --time_based --minimal"
for depth in 1 32; do
    fio --name=read $fio --rw=randread --bs=4k --iodepth=$depth >figures || fail "fio at depth $depth"
    say "4 KiB random reads at depth $depth: $(read_iops <figures) IOPS, $(read_mean_us <figures) us"
done
fio --name=read $fio --rw=read --bs=128k --iodepth=8 >figures || fail "fio of 128 KiB"
say "128 KiB reads at depth 8: $(cut -d';' -f7 figures) KiB/s"
fio --name=raw --filename="/dev/ng${device#/dev/nvme}" --ioengine=io_uring_cmd --cmd_type=nvme --rw=randread --bs=4k --iodepth=16 \
    --size=64m --runtime="$seconds" --time_based --minimal >figures || fail "fio through the character device"
say "4 KiB random reads past the block layer at depth 16: $(read_iops <figures) IOPS"
fio --name=mix --filename="$device" --allow_file_create=0 --direct=1 --ioengine=io_uring --rw=randrw --bsrange=4k-64k --bs_unaligned=0 --blockalign=4k --iodepth=16 \
    --size=128m --verify=crc32c --minimal >figures || { cat figures; fail "mixed load with verification"; }
disconnect
