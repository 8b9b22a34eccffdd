#!/usr/bin/env python3
"""Records the requests that fio makes of the job files in crates/pure/workload/tests/fio/jobs.txt.

usage: record-fio.py [NAME...]    without names, all; writes crates/pure/workload/tests/fio/orders.txt

For each job and clone: how many requests, a hash of all of them, and the first 64 as direction, offset and length. Every file
runs twice, and both runs must make the same requests. A file of one stream is also compared with fio's own log of what it
issues. Needs fio 3.33.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

HOME = pathlib.Path(__file__).resolve().parents[2] / "crates/pure/workload/tests/fio"
FIRST = 64
MASK = (1 << 64) - 1
WORDS = {"read": 0, "write": 1, "trim": 2}


def job_files(text):
    """Name, settings and text of each job file."""
    for part in re.split(r"^== ", text, flags=re.M)[1:]:
        head, body = part.split("\n", 1)
        name, *settings = head.split()
        yield name, {key: int(value) for key, value in (setting.split("=") for setting in settings)}, body


def run(settings, body):
    """The requests of each stream of a job file, in fio's numbering."""
    with tempfile.TemporaryDirectory() as directory:
        here = pathlib.Path(directory)
        if "drive" in settings:
            with open(here / "drive", "wb") as drive:
                drive.truncate(settings["drive"])
        # A log of latencies is kept for each stream apart; the null engine and psync complete in the order of issue.
        engine = "psync" if "drive" in settings else "null"
        head = f"[global]\nioengine={engine}\nwrite_lat_log=log\nlog_offset=1\ndisable_clat=1\ndisable_slat=1\n"
        # With depth, the null engine turns requests away and fio logs them twice.
        log_issued = "take" not in settings and body.count("[") == 1 and not re.search("numjobs|iodepth", body)
        if log_issued:
            head += "write_iolog=issued\n"
        (here / "job.fio").write_text(head + body)
        done = subprocess.run(["fio", "job.fio"], cwd=here, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"fio fails: {done.stdout}{done.stderr}")
        streams = []
        while (log := here / f"log_lat.{len(streams) + 1}.log").exists():
            lines = (line.split(", ") for line in log.read_text().splitlines())
            streams.append([(int(line[2]), int(line[4]), int(line[3])) for line in lines][: settings.get("take")])
        if log_issued:
            lines = (line.split() for line in (here / "issued").read_text().splitlines())
            issued = [(WORDS[line[2]], int(line[3]), int(line[4])) for line in lines if line[2] in WORDS and len(line) == 5]
            if issued != streams[0]:
                sys.exit(f"what fio issues is not what it completes in: {body}")
        return streams


def digest(stream):
    """The hash of tests/fio_orders.rs."""
    found = 0xCBF2_9CE4_8422_2325
    for request in stream:
        for value in request:
            found = (found ^ value) * 0x100_0000_01B3 & MASK
            found = (found << 23 | found >> 41) & MASK
    return found


def main():
    wanted = sys.argv[1:]
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True).stdout.strip()
    lines = [f"# Requests of {version}, written by tests/live/record-fio.py: name and number of the stream, requests, hash, the first ones."]
    for name, settings, body in job_files((HOME / "jobs.txt").read_text()):
        if wanted and name not in wanted:
            continue
        streams = run(settings, body)
        if streams != run(settings, body):
            sys.exit(f"{name}: the second run is another one")
        for number, stream in enumerate(streams, 1):
            first = " ".join(f"{'rwt'[direction]}{offset:x}+{length:x}" for direction, offset, length in stream[:FIRST])
            lines.append(f"{name} {number} {len(stream)} {digest(stream):016x} {first}")
    text = "\n".join(lines) + "\n"
    if wanted:
        print(text, end="")
    else:
        (HOME / "orders.txt").write_text(text)


if __name__ == "__main__":
    main()
