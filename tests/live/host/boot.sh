#!/usr/bin/env bash
# Boots the client on the root file system of this machine, read-only, runs one script in it and ends with its status.
# Every instruction of the client is translated (TCG), so that it runs on any processor, also where there is no KVM or
# where KVM cannot run a kernel of the distribution.
# usage: boot.sh KERNEL OUT SCRIPT [ARGUMENT...]      KERNEL: a directory of kernel.sh
# environment: TAP, ADDRESS, MEMORY, PROCESSORS, LIMIT (seconds, 900), DISK (socket of vhost-user-blk), ROOT (the disk that it
# boots from, such as vda)
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 out=$2 script=$3
shift 3
mkdir -p "$out"
arguments=$(IFS=,; echo "$*")
disk=()
if [ -n "${DISK:-}" ]; then
    # The server reads and writes the memory of the client.
    disk=(-object "memory-backend-memfd,id=memory,size=${MEMORY:-1G},share=on" -machine memory-backend=memory
        -chardev "socket,id=disk,path=$DISK" -device vhost-user-blk-pci,chardev=disk,num-queues=2)
fi
nice -n 10 timeout --foreground -k 5 "${LIMIT:-900}" qemu-system-x86_64 -accel tcg,thread=multi,tb-size=256 -cpu qemu64,+rdrand \
    -smp "${PROCESSORS:-1}" -m "${MEMORY:-1G}" \
    -machine q35 -nodefaults -no-user-config -display none -serial stdio -no-reboot \
    -kernel "$kernel/vmlinux" -initrd "$kernel/initrd" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check nowatchdog address=$ADDRESS \
first=$here/../guest/init.sh script=$script arguments=$arguments${ROOT:+ disk=$ROOT}" "${disk[@]}" \
    -netdev "tap,id=net,ifname=$TAP,script=no,downscript=no" \
    -device "virtio-net-pci,netdev=net,romfile=,mac=52:54:00:00:00:0${ADDRESS##*.}" -device virtio-rng-pci \
    -virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
    -virtfs "local,path=$out,mount_tag=out,security_model=none" </dev/null | sed -u 's|\r$||' | tee "$out/console.log"
[ "${PIPESTATUS[0]}" -ne 124 ] || echo "the client has not ended within ${LIMIT:-900} s"
grep -q '^SCRIPT rc=0' "$out/console.log"
