#!/usr/bin/env bash
# Captures what goes between client and server, and lets tshark look at it: nothing malformed, every type of PDU known.
# usage: wire.sh begin INTERFACE FILE | check FILE PID      `begin` prints the PID of tcpdump
set -uo pipefail

case $1 in
begin)
    # Root is given up by default, and then the file cannot be written everywhere.
    tcpdump -Z root -i "$2" -s 0 -U -w "$3" tcp port 4420 >/dev/null 2>"$3.log" &
    echo $!
    for _ in $(seq 50); do grep -q 'listening on' "$3.log" && exit 0; sleep 0.1; done
    exit 1
    ;;
check)
    kill -INT "$3" 2>/dev/null
    for _ in $(seq 50); do kill -0 "$3" 2>/dev/null || break; sleep 0.1; done
    fields=$(mktemp)
    trap 'rm -f "$fields"' EXIT
    tshark -r "$2" -o nvme-tcp.check_hdgst:TRUE -o nvme-tcp.check_ddgst:TRUE -Y nvme-tcp -T fields -E separator=';' \
        -e nvme-tcp.type -e _ws.malformed -e nvme-tcp.hdgst.status -e nvme-tcp.ddgst.status -e _ws.col.Info >"$fields" 2>/dev/null
    frames=$(wc -l <"$fields")
    pdus=$(cut -d';' -f1 "$fields" | tr ',' '\n' | grep -c .)
    [ "$frames" -gt 0 ] || { echo "tshark has seen no NVMe/TCP"; exit 1; }
    # What tshark 4.0 says of its own reading of the arbitration feature ("Dissector bug") is no fault of the PDU.
    own=$(grep -c 'Dissector bug' "$fields")
    malformed=$(grep -v 'Dissector bug' "$fields" | cut -d';' -f2 | grep -c .)
    # Types 0 to 7 and 9: NVMe/TCP 1.0, 3.3.1.
    unknown=$(cut -d';' -f1 "$fields" | tr ',' '\n' | grep . | grep -cvE '^(0x0*)?[0-79]$')
    damaged=$(cut -d';' -f3,4 "$fields" | tr ';,' '\n\n' | grep -c '^0$')
    echo "-- tshark: $pdus PDUs in $frames frames, $malformed malformed, $unknown of unknown type," \
        "$damaged bad digests; $own not read for a bug of its own"
    [ $((malformed + unknown + damaged)) -eq 0 ]
    ;;
esac
