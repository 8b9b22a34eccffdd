#!/usr/bin/env bash
# Builds the client: the distribution's kernel source as a user-space program (User-Mode Linux) with the NVMe/TCP host in
# it, as KERNEL. Some five minutes on two cores, once; the source package must be installed (linux-source-*).
# usage: kernel.sh KERNEL
set -euo pipefail

kernel=$1
if [ -x "$kernel" ]; then
    exit 0
fi
archive=$(ls /usr/src/linux-source-*.tar.xz 2>/dev/null | sort -V | tail -1)
if [ -z "$archive" ]; then
    echo "no kernel source: apt-get install linux-source flex bison bc libelf-dev libssl-dev xz-utils gcc make" >&2
    exit 1
fi
work=$(dirname "$kernel")/kernel-build
mkdir -p "$work/source" "$work/out"
tar -xf "$archive" -C "$work/source" --strip-components=1
cd "$work/source"
make -s ARCH=um O="$work/out" defconfig
config() { scripts/config --file "$work/out/.config" "$@"; }
for option in MODULES SOUND UML_SOUND DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT FTRACE FRAME_POINTER STATIC_LINK; do
    config -d "$option"
done
for option in DEBUG_INFO_NONE NET INET UNIX PACKET BLOCK BLK_DEV NVME_CORE NVME_FABRICS NVME_TCP NVME_MULTIPATH NVME_AUTH \
    NVME_VERBOSE_ERRORS BLK_DEV_NBD EXT4_FS XFS_FS F2FS_FS CONFIGFS_FS TMPFS TMPFS_XATTR TMPFS_POSIX_ACL DEVTMPFS \
    DEVTMPFS_MOUNT HOSTFS UML_NET UML_NET_VECTOR IO_URING AIO EPOLL HIGH_RES_TIMERS; do
    config -e "$option"
done
make -s ARCH=um O="$work/out" olddefconfig
make -s ARCH=um O="$work/out" -j"$(nproc)" linux
strip -o "$kernel" "$work/out/linux"
rm -rf "$work"
