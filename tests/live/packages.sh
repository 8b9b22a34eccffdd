#!/usr/bin/env bash
# Installs what the tests with real clients use, on Debian and its kin.
# usage: packages.sh [linux]     linux: only what `make test-linux` uses
set -euo pipefail

packages="qemu-system-x86 busybox-static cpio kmod xz-utils zstd iproute2 nvme-cli"
[ "${1:-}" = linux ] || packages+=" fio qemu-utils libnbd-bin nbdkit tshark tcpdump fuse3 sqlite3 postgresql postgresql-contrib
    rocksdb-tools e2fsprogs xfsprogs f2fs-tools user-mode-linux mdadm"
sudo=$([ "$(id -u)" -eq 0 ] || echo sudo)
$sudo apt-get update -q
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages
