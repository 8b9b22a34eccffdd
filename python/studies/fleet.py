"""10,000 drives of mixed age and load over five years, on Ray: how many end each month, how many to keep in stock, how slow they are.

    python python/studies/fleet.py --out fleet                      # on a Ray cluster of this machine; goes on where it was interrupted
    python python/studies/fleet.py --out fleet --on ray://head:10001

It prints the tables of docs/fleet.md and draws its picture into --out; --write puts both into the page. Definitions stand there.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flashyard
import polars
from pages import DOCS, plots, save, written

#: Drives of a point, a site: arrays of 8.
ARRAYS, DRIVES = 25, 8

#: Months that a place was in use before, at most. [A] the five years of the study
AGE = 60

#: How the first drives of a fleet are aged, by name. Both have the same loads and qualities of drives under a seed.
FLEETS: dict[str, dict[str, Any]] = {
    "mixed ages": {"fleet.age_months": AGE, "fleet.age_alike": False},
    "one age an array": {"fleet.age_months": AGE, "fleet.age_alike": True},
    "all new": {"fleet.age_months": 0},
}

#: Months that an order takes. [A] a month, a quarter
LEADS = (1, 3)

#: Share of times of order that the stock must last for. [A]
COVERED = 0.99

#: Parts of all drives that the fan shows.
FAN = ("p5", "p25", "p50", "p75", "p95", "p99")

SECONDS_OF_MONTH = 30 * 86_400


@dataclass(frozen=True)
class Mean:
    """A mean over points, and half of its 95 % confidence interval."""

    value: float
    half: float

    def text(self, digits: int) -> str:
        """Both as a page shows them."""
        return f"{self.value:.{digits}f} ± {self.half:.{digits}f}"


def mean_of(values: Sequence[float]) -> Mean:
    """The mean over points. Half a width: Student's t. Source: [X] Abramowitz and Stegun 26.7.5."""
    if len(values) < 2:
        return Mean(statistics.fmean(values), math.inf)
    z, free = statistics.NormalDist().inv_cdf(0.975), len(values) - 1
    terms = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    student = z + sum(term / free**power for power, term in enumerate(terms, 1))
    return Mean(statistics.fmean(values), student * statistics.stdev(values) / math.sqrt(len(values)))


def rank(values: Sequence[float], part: float) -> float:
    """The value that a part of all does not exceed, by nearest rank."""
    return sorted(values)[max(1, math.ceil(part * len(values))) - 1]


class Fleet:
    """Months of a fleet, a list for each point."""

    def __init__(self, months: polars.DataFrame, drives: int) -> None:
        self.drives = drives
        months = months.with_columns(
            month=(polars.col("begin_seconds") / SECONDS_OF_MONTH).round().cast(polars.Int64),
            ended=polars.col("ended_wear") + polars.col("ended_other"),
        )
        self._points = months.sort("month").partition_by("set.seed", maintain_order=True)
        self.months = months["month"].n_unique()

    def of(self, column: str) -> list[list[float]]:
        """A list of months for each point."""
        return [point[column].to_list() for point in self._points]

    def by_month(self, column: str, times: float = 1.0) -> list[Mean]:
        """The mean over points of each month."""
        return [mean_of([value * times for value in month]) for month in zip(*self.of(column), strict=True)]

    def total(self, column: str, times: float = 1.0) -> Mean:
        """The mean over points of the sum over months."""
        return mean_of([sum(point) * times for point in self.of(column)])

    def stock(self, lead: int) -> tuple[float, float]:
        """Drives to keep at each point, and in one place for all points: at so many of them are enough until the next order comes, at
        99 % of all times of an order, which takes `lead` months."""
        ended = self.of("ended")
        sums = [[sum(point[month : month + lead]) for month in range(self.months - lead + 1)] for point in ended]
        each = rank([one for point in sums for one in point], COVERED)
        return each, rank([sum(month) for month in zip(*sums, strict=True)], COVERED)

    @property
    def all_drives(self) -> int:
        """Places of all points."""
        return self.drives * len(self._points)


def run(
    out: Path, points: int, on: str, workers: int | None, *, arrays: int = ARRAYS, drives: int = DRIVES, months: int = 60, **options: Any
) -> dict[str, Fleet]:
    """Lets all fleets live, a point for each seed."""
    size = {"fleet.arrays": arrays, "fleet.drives": drives, "fleet.months": months}
    found = {}
    for name, ages in FLEETS.items():
        swept = flashyard.sweep(
            "ageing-fleet",
            {"seed": range(1, points + 1)},
            out=out / name.replace(" ", "-"),
            set={"designs": ["last"], **size, **ages},
            table="months",
            on=on,
            workers=workers,
            **options,
        )
        found[name] = Fleet(swept.to_polars(), arrays * drives)
    return found


def half_gone(fleet: Fleet) -> str:
    """The first month at whose end half of the first drives or fewer are in use, counted from 1."""
    left = [sum(month) / fleet.all_drives for month in zip(*fleet.of("originals"), strict=True)]
    return next((str(month) for month, share in enumerate(left, 1) if share <= 0.5), "none")


def tables(fleets: dict[str, Fleet]) -> dict[str, str]:
    """The tables of the page by name."""
    lines = ["| fleet | drives | half of the first drives ended by month | left after all months | ends a month of 1,000 drives | most in a month | arrays with two ends in a month, a year of 100 arrays |"]
    lines.append("|---|--:|--:|--:|--:|--:|--:|")
    for name, fleet in fleets.items():
        years, arrays = fleet.months / 12, fleet.drives / DRIVES
        left = fleet.by_month("originals", 100 / fleet.drives)[-1]
        ends = fleet.total("ended", 1000 / fleet.drives / fleet.months)
        most = max(month.value for month in fleet.by_month("ended", 1000 / fleet.drives))
        two = fleet.total("arrays_with_two_ends", 100 / arrays / years)
        lines.append(f"| {name} | {fleet.all_drives:,} | {half_gone(fleet)} | {left.text(1)} % | {ends.text(1)} | {most:.1f} | {two.text(1)} |")
    stock = ["| fleet | an order takes | at each site | of its drives | in one place | of all drives |", "|---|--:|--:|--:|--:|--:|"]
    for name, fleet in fleets.items():
        for lead in LEADS:
            each, all_ = fleet.stock(lead)
            takes = f"{lead} month{'s' if lead > 1 else ''}"
            shares = [each / fleet.drives, all_ / fleet.all_drives]
            stock.append(f"| {name} | {takes} | {each:.0f} | {shares[0]:.1%} | {all_:,.0f} | {shares[1]:.1%} |".replace("%", " %"))
    slow = [f"| month | reads | {' | '.join(f'{part[1:]} % of drives' for part in FAN)} |", "|--:|---|" + "--:|" * len(FAN)]
    mixed = fleets["mixed ages"]
    for month in sorted({0, mixed.months // 4, mixed.months // 2, mixed.months - 1}):
        for column, name in (("mean_us", "mean, us"), ("p99_us", "p99, us")):
            values = [mixed.by_month(f"{column}_{part}")[month].value for part in FAN]
            slow.append(f"| {month + 1} | {name} | {' | '.join(f'{value:,.0f}' for value in values)} |")
    return {name: "\n".join(rows) + "\n" for name, rows in (("ends", lines), ("stock", stock), ("latency", slow))}


def difference(fleets: dict[str, Fleet]) -> Mean:
    """How many more arrays of one age than of mixed ages lose two drives in a month, a year of 100 arrays, seed by seed."""
    mixed, alike = fleets["mixed ages"], fleets["one age an array"]
    sums = [[sum(point) for point in fleet.of("arrays_with_two_ends")] for fleet in (mixed, alike)]
    times = 100 / (mixed.drives / DRIVES) / (mixed.months / 12)
    return mean_of([(b - a) * times for a, b in zip(*sums, strict=True)])


def draw(fleets: dict[str, Fleet], file: Path) -> None:
    """Draws first drives in use, ends by month, and both fans."""
    figure, panels = plots("fleet").subplots(2, 2, figsize=(9, 6.2), layout="constrained")
    (left, ends), fans = panels
    for (name, fleet), style in zip(fleets.items(), ("-", "--", "-"), strict=True):
        months = range(1, fleet.months + 1)
        for panel, column, times in ((left, "originals", 100 / fleet.drives), (ends, "ended", 1000 / fleet.drives)):
            means = fleet.by_month(column, times)
            line = panel.plot(months, [mean.value for mean in means], label=name, linestyle=style)[0]
            low, high = [mean.value - mean.half for mean in means], [mean.value + mean.half for mean in means]
            panel.fill_between(months, low, high, alpha=0.25, linewidth=0, color=line.get_color())
    left.set_title("Drives of the first month in use, %")
    ends.set_title("Ends a month of 1,000 drives, with 95 % intervals")
    left.legend(frameon=False)
    for panel in (left, ends):
        panel.set_ylim(bottom=0)
    mixed = fleets["mixed ages"]
    for panel, column, name in zip(fans, ("mean_us", "p99_us"), ("Mean read of a drive, ms", "p99 of reads of a drive, ms"), strict=True):
        lines = {part: [mean.value / 1000 for mean in mixed.by_month(f"{column}_{part}")] for part in FAN}
        months = range(1, mixed.months + 1)
        panel.fill_between(months, lines["p5"], lines["p95"], alpha=0.2, color="C0", linewidth=0, label="5 to 95 % of drives")
        panel.fill_between(months, lines["p25"], lines["p75"], alpha=0.4, color="C0", linewidth=0, label="25 to 75 %")
        panel.plot(months, lines["p50"], color="C0", label="50 %")
        panel.plot(months, lines["p99"], color="C3", linestyle="--", label="99 %")
        panel.set_title(f"{name}, mixed ages")
        panel.set_yscale("log")
        least, most = min(lines["p5"]), max(lines["p99"])
        marks = [mark for mark in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if 0.8 * least < mark < 1.5 * most]
        panel.minorticks_off()
        panel.set_yticks(marks, [f"{mark:g}" for mark in marks])
        # Room for the legend above the lines.
        panel.set_ylim(0.8 * least, 3 * most)
        panel.legend(frameon=False, ncols=2, loc="upper left")
    for panel in panels.flat:
        panel.set_xlabel("month")
        panel.grid(alpha=0.3)
    save(figure, file)


def main() -> None:
    """Runs the study and prints its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="keeps the points")
    parser.add_argument("--on", default="ray", help="threads, ray, or the address of a cluster")
    parser.add_argument("--workers", type=int, help="points at once")
    parser.add_argument("--points", type=int, default=50, help="sites of 200 drives in each fleet")
    parser.add_argument("--write", action="store_true", help="puts tables and picture into docs")
    asked = parser.parse_args()
    fleets = run(asked.out, asked.points, asked.on, asked.workers)
    found = tables(fleets)
    print("\n".join(found.values()))
    print(f"arrays of one age beyond those of mixed ages: {difference(fleets).text(1)} in a year of 100 arrays")
    draw(fleets, asked.out / "fleet.svg")
    if asked.write:
        draw(fleets, DOCS / "images" / "fleet.svg")
        page = DOCS / "fleet.md"
        page.write_text(written(page.read_text(), found))


if __name__ == "__main__":
    main()
