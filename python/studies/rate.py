"""Points a second of one sweep on threads and on a local Ray cluster, in turns: is Ray as fast?

    python python/studies/rate.py --workers 2 --points 24 --rounds 3

Of each sweep it takes two rates. That of a whole sweep is its points by its time, with the start and the end of the cluster. The steady one is that of
the points after the first of each worker, by the time from then to the last point: neither start nor end. It prints the medians over rounds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import flashyard

#: Where points run.
PLACES = ("threads", "ray")


def rates(on: str, workers: int, points: int, arrays: int, out: Path) -> tuple[float, float]:
    """Points a second of a whole sweep and of its steady part, at fleets of so many arrays."""
    finished: list[float] = []
    began = time.perf_counter()
    flashyard.sweep(
        "ageing-fleet",
        {"seed": range(1, points + 1)},
        out=out,
        set={"designs": ["last"], "fleet.arrays": arrays},
        on=on,
        workers=workers,
        progress=lambda share, word: finished.append(time.perf_counter()),
    )
    ended = time.perf_counter()
    return points / (ended - began), (points - workers) / (finished[-1] - finished[workers - 1])


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--points", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--arrays", type=int, default=12, help="of 8 drives: a point of about a second")
    asked = parser.parse_args()
    if asked.points <= asked.workers:
        parser.error("give more points than workers")
    found: dict[str, list[tuple[float, float]]] = {on: [] for on in PLACES}
    for number in range(asked.rounds):
        with tempfile.TemporaryDirectory() as directory:
            for on in PLACES:
                found[on].append(rates(on, asked.workers, asked.points, asked.arrays, Path(directory, on)))
                whole, steady = found[on][-1]
                print(f"round {number + 1}, {on}: {whole:.3f} points/s whole, {steady:.3f} steady", flush=True)
            kept = [[file.read_bytes() for file in sorted(Path(directory, on).iterdir())] for on in PLACES]
            if kept[0] != kept[1]:
                raise SystemExit("points on Ray are not those on threads")
    for which, name in enumerate(("whole", "steady")):
        threads, ray = (statistics.median(rate[which] for rate in found[on]) for on in PLACES)
        print(f"{name}: {threads:.3f} points/s on threads, {ray:.3f} on Ray, {ray / threads:.1%}")


if __name__ == "__main__":
    main()
