#!/usr/bin/env python3
"""SPDK's load generator on SPDK's NVMe/TCP target and on ours, in turn: a table of medians.

usage: spdk_compare.py SPDK [--rounds 5] [--seconds 3]

SPDK is a directory in which SPDK was built (build/bin/nvmf_tgt and build/bin/spdk_nvme_perf). Its target has one polling core and
a device in memory (bdev_malloc); ours runs without a clock over a plain drive whose bytes are in memory, with room enough that random
writes collect no garbage. Both devices have 320 MiB in blocks of 4 KiB, are written over first, and are asked by one core. FLASHYARD_PROGRAM is
the program, without it this tree's release build.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZE = 320 << 20
BLOCK = 4096
SPDK_NQN = "nqn.2016-06.io.spdk:cnode1"
OUR_NQN = "nqn.2026-11.io.flashyard:drive-0"
# Name, kind of load, bytes of a request, requests under way.
JOBS = [
    ("read, depth 1", "randread", 4096, 1),
    ("write, depth 1", "randwrite", 4096, 1),
    ("read, depth 32", "randread", 4096, 32),
    ("write, depth 32", "randwrite", 4096, 32),
    ("read, depth 128", "randread", 4096, 128),
    ("write, depth 128", "randwrite", 4096, 128),
    ("128 KiB read, depth 8", "read", 131072, 8),
    ("128 KiB write, depth 8", "write", 131072, 8),
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_open(port, server, log):
    for _ in range(200):
        if server.poll() is not None:
            sys.exit(f"the server ended with status {server.returncode}:\n{log.read_text()}")
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit("the server does not listen after 20 s")


def spdk_target(spdk, folder, log, port):
    """SPDK's target with one device in memory, on the first core."""
    listener = {"trtype": "TCP", "adrfam": "IPv4", "traddr": "127.0.0.1", "trsvcid": str(port)}
    device = {"name": "memory", "num_blocks": SIZE // BLOCK, "block_size": BLOCK}
    nvmf = [
        ("nvmf_create_transport", {"trtype": "TCP"}),
        ("nvmf_create_subsystem", {"nqn": SPDK_NQN, "allow_any_host": True, "serial_number": "MEMORY1"}),
        ("nvmf_subsystem_add_ns", {"nqn": SPDK_NQN, "namespace": {"bdev_name": "memory"}}),
        ("nvmf_subsystem_add_listener", {"nqn": SPDK_NQN, "listen_address": listener}),
    ]
    calls = lambda pairs: [{"method": method, "params": params} for method, params in pairs]
    subsystems = {"bdev": calls([("bdev_malloc_create", device)]), "nvmf": calls(nvmf)}
    config = {"subsystems": [{"subsystem": name, "config": entries} for name, entries in subsystems.items()]}
    (folder / "spdk.json").write_text(json.dumps(config))
    command = [spdk / "build/bin/nvmf_tgt", "-m", "0x1", "--no-huge", "-s", "1024", "--no-pci", "-c", folder / "spdk.json"]
    return subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT)


def our_target(program, log, port):
    command = ["taskset", "1", program, "serve", ROOT / "scenarios/live/scenario.toml", "--listen", f"127.0.0.1:{port}", "--pace", "off"]
    # 32 superblocks of 16 MiB, of which the host sees SIZE; the clock is of cores that are no limit.
    settings = ['designs=["conv"]', "drive.over_provisioning=0.6", "drive.blocks_per_plane=32", "drive.core_clock_mhz=1000"]
    command += [word for setting in settings for word in ("--set", setting)]
    return subprocess.Popen(command, stdout=log.open("w"), stderr=subprocess.STDOUT)


def load(spdk, port, nqn, kind, size, depth, seconds):
    """Requests a second and their mean latency in microseconds, by SPDK's generator on the second core."""
    transport = f"trtype:TCP adrfam:IPv4 traddr:127.0.0.1 trsvcid:{port} subnqn:{nqn}"
    command = [spdk / "build/bin/spdk_nvme_perf", "-c", "0x2", "--no-huge", "-s", "1024", "-q", depth, "-o", size]
    command += ["-w", kind, "-t", seconds, "-r", transport]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    total = re.search(r"^Total\s*:\s*([\d.]+)\s+[\d.]+\s+([\d.]+)", done.stdout, re.MULTILINE)
    if done.returncode or not total:
        sys.exit(f"spdk_nvme_perf fails ({done.returncode}):\n{done.stdout}{done.stderr}")
    return float(total[1]), float(total[2])


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("spdk", type=pathlib.Path, help="directory in which SPDK was built")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=int, default=3, help="for each job")
    given = arguments.parse_args()
    program = os.environ.get("FLASHYARD_PROGRAM") or str(ROOT / "target/release/flashyard")
    for needed in (given.spdk / "build/bin/nvmf_tgt", given.spdk / "build/bin/spdk_nvme_perf", pathlib.Path(program)):
        if not needed.is_file():
            sys.exit(f"{needed} is missing: build it first")
    spdk = given.spdk.resolve()
    folder = pathlib.Path(tempfile.mkdtemp())
    log = folder / "log"
    targets = {
        "SPDK": (lambda port: spdk_target(spdk, folder, log, port), SPDK_NQN),
        "ours": (lambda port: our_target(program, log, port), OUR_NQN),
    }
    # They do not run at once: a target of SPDK takes its core whether it is asked or not.
    figures = {(name, job[0]): [] for name in targets for job in JOBS}
    for round_number in range(given.rounds):
        for name, (start, nqn) in targets.items():
            port = free_port()
            server = start(port)
            try:
                wait_until_open(port, server, log)
                load(spdk, port, nqn, "write", 131072, 8, 2)
                for job, kind, size, depth in JOBS:
                    figures[name, job].append(load(spdk, port, nqn, kind, size, depth, given.seconds))
            finally:
                server.terminate()
                server.wait(20)
        print(f"round {round_number + 1} of {given.rounds}", file=sys.stderr)
    shutil.rmtree(folder)
    print(f"{'random 4 KiB, and in order':24} {'SPDK, requests/s':>28} {'ours, requests/s':>28} {'ratio':>6} {'mean latency, us':>18}")
    for job, *_ in JOBS:
        middles, words = [], []
        for name in targets:
            rates = sorted(rate for rate, _ in figures[name, job])
            middles.append(statistics.median(rates))
            words.append(f"{middles[-1]:,.0f} ({rates[0]:,.0f} to {rates[-1]:,.0f})")
        waits = [statistics.median(wait for _, wait in figures[name, job]) for name in targets]
        print(f"{job:24} {words[0]:>28} {words[1]:>28} {middles[1] / middles[0]:6.2f} {waits[0]:8.1f}, {waits[1]:.1f}")


if __name__ == "__main__":
    main()
