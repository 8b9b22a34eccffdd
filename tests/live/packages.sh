#!/usr/bin/env bash
# Installs what the tests with real clients use, on Debian and its kin.
set -euo pipefail

sudo=$([ "$(id -u)" -eq 0 ] || echo sudo)
$sudo apt-get update -q
$sudo apt-get install -y -q --no-install-recommends nvme-cli fio iproute2 busybox-static qemu-utils libnbd-bin nbdkit tshark tcpdump \
    sqlite3 postgresql postgresql-contrib rocksdb-tools \
    e2fsprogs xfsprogs f2fs-tools linux-source flex bison bc libelf-dev libssl-dev xz-utils gcc make
