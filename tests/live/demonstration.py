#!/usr/bin/env python3
"""Six drives loaded by fio, six idle: lending begins, throughput rises, a lender is pulled, nothing is lost.

usage: demonstration.py FLASHYARD [PACE] [DIRECTORY]      what is seen goes to DIRECTORY (events.jsonl, fio.json)

Needs fio with its nbd engine. Times are simulated seconds unless they say "wall".
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUSY = 6
# Wall seconds from the start of the load.
LENDING_ON, PULL, INSERT, END = 8.0, 16.0, 20.0, 24.0


class Watch(threading.Thread):
    """Follows the dashboard's stream and keeps every snapshot."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.snapshots = address, []

    def run(self):
        try:
            with urllib.request.urlopen(f"http://{self.address}/events") as stream:
                for line in stream:
                    if line.startswith(b"data: "):
                        told = json.loads(line[6:])
                        self.snapshots.extend(told if isinstance(told, list) else [told])
        except OSError:
            pass  # the server has ended

    def now(self):
        return self.snapshots[-1]["time_seconds"]


def fio(directory, socket):
    """Starts fio on the busy drives: every block that is written is read back and compared."""
    jobs = [part for drive in range(BUSY) for part in (f"--name=busy-{drive}", f"--uri=nbd+unix:///drive-{drive}?socket={socket}")]
    common = ["--ioengine=nbd", "--rw=randrw", "--bs=4k", "--iodepth=128", "--size=64m", "--time_based", f"--runtime={END:.0f}", "--verify=crc32c", "--verify_backlog=4096"]
    return subprocess.Popen(["fio", "--output-format=json", f"--output={directory}/fio.json", f"--aux-path={directory}", *common, *jobs])


def busy_figures(snapshots, begin, end):
    """Mean requests a second of the busy drives together, and their highest p99 in microseconds."""
    within = [one for one in snapshots if begin <= one["time_seconds"] < end]
    seconds = sum(one["interval_seconds"] for one in within)
    requests = sum(one["interval_seconds"] * sum(drive["iops"] for drive in one["drives"][:BUSY]) for one in within)
    slowest = sorted(max(drive["latency_us"]["p99"] for drive in one["drives"][:BUSY]) for one in within)
    return requests / max(seconds, 1e-9), slowest[len(slowest) // 2] if slowest else float("nan")


def first(snapshots, begin, what):
    """The time of the first snapshot from `begin` on for which `what` holds."""
    return next((one["time_seconds"] for one in snapshots if one["time_seconds"] >= begin and what(one)), None)


def cores_lent(snapshot):
    return sum(loan["amount"] for loan in snapshot["lending"] if loan["resource"] == "processor")


def lender_of_most(snapshot):
    lent = {}
    for loan in snapshot["lending"]:
        if loan["resource"] == "processor":
            lent[loan["lender"]] = lent.get(loan["lender"], 0) + loan["amount"]
    return max(lent, key=lent.get) if lent else None


def main():
    flashyard, pace = sys.argv[1], (sys.argv[2:] or ["0.1"])[0]
    directory = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp(prefix="flashyard-"))
    directory.mkdir(parents=True, exist_ok=True)
    socket, control, dash = directory / "box.nbd", directory / "box", "127.0.0.1:8080"
    command = [flashyard, "serve", ROOT / "scenarios/live/scenario.toml", "--pace", pace, "--nbd", f"unix:{socket}", "--dash", dash, "--control", control]
    with open(directory / "serve.log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        return show(flashyard, control, dash, directory, socket)
    finally:
        server.terminate()
        server.wait()


def show(flashyard, control, dash, directory, socket):
    def ctl(*words):
        subprocess.run([flashyard, "ctl", control, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
        return watch.now()

    def wait_until(wall):
        time.sleep(max(0.0, began + wall - time.monotonic()))

    watch = Watch(dash)
    for _ in range(100):
        if control.exists():
            break
        time.sleep(0.1)
    watch.start()
    while not watch.snapshots:
        time.sleep(0.05)
    ctl("harvest", "off")
    load, began = fio(directory, socket), time.monotonic()
    wait_until(LENDING_ON)
    on = ctl("harvest", "on")
    wait_until(PULL)
    lender = lender_of_most(watch.snapshots[-1])
    if lender is None:
        print("nobody lends: the load does not fill the busy drives; give a smaller pace")
        return 1
    pulled = ctl("pull", lender)
    wait_until(INSERT)
    back = ctl("insert", lender)
    load.wait()
    end = watch.now()

    seen = watch.snapshots
    with open(directory / "events.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(one) + "\n" for one in seen)
    pace = (pulled - on) / (PULL - LENDING_ON)
    settle, tail = 2.0 * pace, 0.5 * pace
    parts = [
        ("nobody lends", on - settle, on - tail),
        ("lending", pulled - 2 * settle, pulled - tail),
        (f"drive-{lender} pulled", pulled + settle, back - tail),
        ("put back", back + settle / 2, back + 2 * settle),
    ]
    print(f"{'':18}{'requests/s':>12}{'p99':>12}")
    for name, since, until in parts:
        rate, p99 = busy_figures(seen, since, until)
        print(f"{name:18}{rate:12,.0f}{p99:9,.0f} us")
    lent = first(seen, on, lambda one: cores_lent(one) > 0)
    gone = first(seen, pulled, lambda one: one["drives"][lender]["state"] != "ready")
    others = first(seen, gone or pulled, lambda one: cores_lent(one) > 0 and all(loan["lender"] != lender for loan in one["lending"]))
    print(f"lending begins {1e3 * (lent - on):.1f} ms after it is allowed" if lent else "lending never began")
    print(f"{1e3 * (others - pulled):.1f} ms after drive-{lender} was pulled only others lend" if others else "nobody lends any more")
    return verdict(directory, load.returncode, end)


def verdict(directory, status, end):
    """What fio says: requests, bytes, and whether a byte was wrong."""
    jobs = json.loads((directory / "fio.json").read_text(encoding="utf-8"))["jobs"]
    requests = sum(job[way]["total_ios"] for job in jobs for way in ("read", "write"))
    mebibytes = sum(job[way]["io_bytes"] for job in jobs for way in ("read", "write")) / 2**20
    errors = sum(job["error"] != 0 for job in jobs)
    print(f"{requests:,} requests, {mebibytes:,.0f} MiB in {end:.2f} s; jobs with errors or a byte that was wrong: {errors}")
    return 0 if status == 0 and errors == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
