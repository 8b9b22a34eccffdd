#!/usr/bin/env bash
# Fetches a kernel of the distribution, as it is shipped, and makes DIRECTORY/vmlinux, config and initrd of it. Nothing is
# installed: the package is only unpacked. Half a minute, once.
# usage: kernel.sh stable|backports DIRECTORY
#   stable     the kernel of this release; that of Debian 12 has no in-band authentication
#   backports  the kernel of this release's backports; the system's own sources are left as they are
set -euo pipefail

release=$1 directory=$2
# One of an older version of this script is made anew.
if [ -s "$directory/vmlinux" ] && [ "$directory/initrd" -nt "$0" ]; then
    exit 0
fi
rm -rf "$directory"
mkdir -p "$directory/lists" "$directory/package" "$directory/root"
directory=$(realpath "$directory")
trap 'rm -rf "$directory/lists" "$directory/package" "$directory/root" "$directory"/*.deb' EXIT

# The mirror is the one that this machine uses.
options=()
if [ "$release" = backports ]; then
    codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mirror=$(apt-get indextargets --format '$(SITE)' "Codename: $codename" | sed -n 1p)
    echo "deb ${mirror:?no mirror of $codename is known to apt} $codename-backports main" >"$directory/apt.list"
    options=(-o "Dir::Etc::sourcelist=$directory/apt.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$directory/lists")
    apt-get -qq "${options[@]}" update
fi
package=$(apt-cache "${options[@]}" depends linux-image-amd64 | sed -n 's/^ *Depends: \(linux-image-[^ ]*\).*/\1/p' | sed -n 1p)
if [ -z "$package" ]; then
    echo "apt knows no linux-image-amd64 in $release; 'apt-get update' may help" >&2
    exit 1
fi
cd "$directory"
apt-get -qq "${options[@]}" -o APT::Sandbox::User=root download "$package"
dpkg-deb -x ./*.deb package
modules=$(ls package/lib/modules)
depmod -b package "$modules"

# The client's own memory holds no more than the modules that its scripts need, unpacked: the guest is the slow side.
lib=root/lib/modules/$modules
mkdir -p root/{bin,proc,sys,dev,host,layer,new} "$lib"
cp "$(command -v busybox)" root/bin/busybox
for module in virtio_pci virtio_blk virtio_net virtio_rng 9p 9pnet_virtio overlay nvme-tcp ext4 xfs f2fs crc32c_generic crc32c_intel \
    hmac sha256_generic sha512_generic dh_generic; do
    modprobe -d package -S "$modules" --show-depends "$module" 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | sort -u | while read -r file; do
    copy=$lib/${file#*/lib/modules/$modules/}
    mkdir -p "${copy%/*}"
    cp "$file" "$copy"
    case $copy in *.xz) unxz "$copy" ;; *.zst) unzstd -q --rm "$copy" ;; esac
done
cp package/lib/modules/"$modules"/modules.{builtin,order,builtin.modinfo} "$lib"
depmod -b root "$modules"
cat >root/init <<'I'
#!/bin/busybox sh
# The root of the machine that the client runs on, read-only, with a layer of memory over it.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /sbin
ln -s /bin/modprobe /sbin/modprobe
# Or a disk of its own, which has all that it needs.
for word in $(cat /proc/cmdline); do case $word in disk=*) disk=${word#disk=} ;; esac; done
if [ -n "${disk:-}" ]; then
    modprobe -a virtio_pci virtio_blk ext4
    until [ -b "/dev/$disk" ]; do sleep 0.1; done
    mount -t ext4 "/dev/$disk" /new
    for directory in proc sys dev; do mount --move /$directory /new/$directory; done
    exec switch_root /new /sbin/init
fi
modprobe -a virtio_pci 9pnet_virtio 9p overlay virtio_net virtio_rng
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=1048576,cache=loose root /host
mount -t tmpfs layer /layer
mkdir /layer/upper /layer/work
mount -t overlay -o lowerdir=/host,upperdir=/layer/upper,workdir=/layer/work root /new
mkdir -p /new/lib/modules
mount -t tmpfs modules /new/lib/modules
cp -a /lib/modules/* /new/lib/modules/
for directory in proc sys dev; do mount --move /$directory /new/$directory; done
for word in $(cat /new/proc/cmdline); do case $word in first=*) first=${word#first=} ;; esac; done
exec switch_root /new /bin/bash "$first"
I
chmod +x root/init
(cd root && find . | cpio -o -H newc --quiet) >initrd.new
cp package/boot/config-"$modules" config

# The kernel unpacks itself when it boots, which is most of the time of an emulated boot; so it is unpacked here.
unpacked() { # MAGIC-OF-THE-ARCHIVE PROGRAM
    local at
    for at in $(LC_ALL=C grep -aboP "$1" package/boot/vmlinuz-"$modules" | cut -d: -f1); do
        tail -c +$((at + 1)) package/boot/vmlinuz-"$modules" | "$2" >vmlinux 2>/dev/null || true
        [ "$(head -c 4 vmlinux | od -An -c | tr -d ' ')" != '177ELF' ] || return 0
    done
    return 1
}
unpacked '\xFD7zXZ\x00' unxz || unpacked '\x28\xB5\x2F\xFD' unzstd || { echo "$package: no kernel is found in it" >&2; exit 1; }
mv initrd.new initrd
