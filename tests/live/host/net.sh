#!/usr/bin/env bash
# A network namespace of its own with a bridge and two taps: server and clients see each other and nothing else.
# usage: net.sh up NAME | down NAME      `down` ends the processes in it
set -euo pipefail

case $1 in
up)
    ip netns add "$2"
    inside="ip netns exec $2"
    $inside ip link set lo up
    $inside ip link add br0 type bridge
    $inside ip addr add 192.168.77.1/24 dev br0
    $inside ip link set br0 up
    for tap in tap0 tap1; do
        $inside ip tuntap add $tap mode tap
        $inside ip link set $tap master br0
        $inside ip link set $tap up
    done
    ;;
down)
    # What is left in it: a server that a case has restarted, a client that a signal has orphaned.
    ip netns pids "$2" 2>/dev/null | xargs -r kill 2>/dev/null || true
    ip netns del "$2" 2>/dev/null || true
    ;;
esac
