#!/usr/bin/env bash
# Boots the client on the root file system of this machine, read-only, runs one script in it and ends with its status.
# usage: boot.sh KERNEL OUT SCRIPT [ARGUMENT...]      environment: TAP, ADDRESS (both or none), MEMORY
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
kernel=$1 out=$2 script=$3
shift 3
mkdir -p "$out"
arguments=$(IFS=,; echo "$*")
"$kernel" mem="${MEMORY:-512M}" rootfstype=hostfs rootflags=/ ro init="$here/../guest/init.sh" quiet con=null \
    con0=null,fd:1 ssl=null ${TAP:+vec0:transport=tap,ifname=$TAP,depth=128,gro=1} ${ADDRESS:+address=$ADDRESS} \
    out="$out" script="$script" arguments="$arguments" </dev/null | tee "$out/console.log"
grep -q '^SCRIPT rc=0' "$out/console.log"
