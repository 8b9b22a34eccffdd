"""Tables and pictures of the pages on lending, from runs of their scenarios.

    python python/studies/lending.py                    # prints the tables of all pages; two minutes
    python python/studies/lending.py stability --write  # puts tables and picture into docs/stability.md
    python python/studies/lending.py --check            # fails where a page shows other tables

The pages say what the columns are. Results are the same on any machine.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flashyard
from pages import DOCS, ROOT, plots, save, written

#: A design of a report, or one of its drives: figures by their names.
Figures = dict[str, Any]

#: Of bars and lines: what lends nothing, and what lends.
GREY, BLUE, RED = "#8a8f98", "#4f81bd", "#c0504d"


@dataclass(frozen=True)
class Page:
    """Tables by the names of their marks, and the function that draws the picture, where there is one."""

    tables: dict[str, str]
    draw: Callable[[Path], None] | None = None


def run(name: str, **more: Any) -> flashyard.Report:
    """Runs a scenario of this repository."""
    return flashyard.run(str(ROOT / "scenarios" / name / "scenario.toml"), **more)


def table(titles: Sequence[str], words: int, rows: Iterable[Sequence[str]]) -> str:
    """A table whose first columns are words, and the others figures."""
    marks = ["---" if place < words else "--:" for place in range(len(titles))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [titles, marks, *rows])


def keys(design: Figures) -> dict[str, str]:
    """What a design was swept to, by the last words of the keys."""
    swept = (point.split("=", 1) for point in design["point"])
    return {key.split(".")[-1]: value for key, value in swept}


def gigabytes(things: Figures | Sequence[Figures], digits: int = 2) -> str:
    """Throughput of a design or of some drives."""
    of = [things] if isinstance(things, dict) else things
    return f"{sum(one['throughput_bytes_per_s'] for one in of) / 1e9:.{digits}f} GB/s"


def p99(things: Figures | Sequence[Figures]) -> float:
    """99th percentile of latency in us: of a design, or the highest of some drives."""
    of = [things] if isinstance(things, dict) else things
    return max(float(one["latency_us"]["p99"]) for one in of)


def us(value: float) -> str:
    """A time as the pages show it."""
    return f"{value:,.0f} µs"


def percent(share: float, digits: int = 0) -> str:
    """A share as the pages show it."""
    return f"{100 * share:.{digits}f} %"


def evenness(drives: Sequence[Figures]) -> float:
    """Jain's index of throughputs: one where they are equal."""
    rates = [drive["throughput_bytes_per_s"] for drive in drives]
    return float(sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates)))


def swing(drives: Sequence[Figures]) -> str:
    """The largest swing of some drives."""
    return f"{100 * max(drive['redirected_swing'] for drive in drives):.1f}"


def settled(drives: Sequence[Figures]) -> str:
    """When the last of some drives has settled."""
    times = [drive["redirected_settled_seconds"] for drive in drives]
    return "never" if None in times else f"{1000 * max(times):.0f} ms"


def bars(name: str, names: Sequence[str], panels: Sequence[tuple[str, Sequence[float], int]], first: int) -> Callable[[Path], None]:
    """A picture of horizontal bars: a panel for each figure, and the `first` bars in grey."""

    def draw(file: Path) -> None:
        figure, axes = plots(name).subplots(1, len(panels), figsize=(9, 0.6 + 0.3 * len(names)), layout="constrained")
        for axis, (title, values, digits) in zip(axes, panels, strict=True):
            colours = [GREY if place < first else BLUE for place in range(len(names))]
            drawn = axis.barh(range(len(names)), values, color=colours)
            axis.bar_label(drawn, labels=[f"{value:,.{digits}f}" for value in values], padding=2)
            axis.set_yticks(range(len(names)), names)
            axis.invert_yaxis()
            axis.set_xlim(0, 1.15 * max(values))
            axis.set_title(title)
        save(figure, file)

    return draw


def lender_choice() -> Page:
    """Choices of a lender: docs/lender-choice.md."""
    by_seed = [run("lender-choice", seed=seed).designs for seed in (1, 2, 3)]

    def name(design: Figures) -> str:
        return keys(design).get("lender_choice", "no lending (Shrunk)")

    rows = []
    for designs in zip(*by_seed, strict=True):
        one = designs[0]
        others = ", ".join(gigabytes(design, 1)[:-5] for design in designs[1:])
        taken, late = one["harvest"]["processors_taken"], one["harvest"]["contended"]
        came_late = f"{late}, {taken}" if taken else ""
        rows.append(
            (name(one), f"{gigabytes(one, 1)[:-5]} ({others})", us(p99(one)), us(one["latency_us"]["mean"]), came_late, percent(evenness(one["drives"]), 1))
        )
    titles = ("choice", "throughput of the enclosure, GB/s", "p99", "mean", "swaps lost, beside those that succeeded", "evenness")
    first = by_seed[0]
    rates = [design["throughput_bytes_per_s"] / 1e9 for design in first]
    panels = [("Throughput of the enclosure, GB/s", rates, 1), ("p99 of the enclosure, µs", [p99(design) for design in first], 0)]
    return Page({"choices": table(titles, 1, rows)}, bars("lender-choice", [name(design) for design in first], panels, 1))


def lender_qos() -> Page:
    """Caps on the p99 of lenders: docs/lender-qos.md."""
    designs = run("lender-qos").designs
    shrunk = designs[0]
    by_rule = {rule: [design for design in designs[1:] if keys(design)["balance"] == rule] for rule in ("water-filling", "damped")}

    def gain(design: Figures) -> str:
        return percent(sum(drive["ios"] for drive in design["drives"][:2]) / sum(drive["ios"] for drive in shrunk["drives"][:2]) - 1)

    rows = [("no lending (Shrunk)", us(p99(shrunk["drives"][2:])), "", gigabytes(shrunk["drives"][:2], 1), "")]
    for water, damped in zip(*by_rule.values(), strict=True):
        lenders, also = water["drives"][2:], damped["drives"][2:]
        cap = keys(water)["lender_p99_cap"]
        rows.append(
            (
                "100: none in effect" if cap == "100" else cap,
                f"{us(p99(lenders))} ({p99(also):,.0f})",
                percent(p99(lenders) / p99(shrunk["drives"][2:]) - 1),
                f"{gigabytes(water['drives'][:2], 1)} ({gigabytes(damped['drives'][:2], 1)[:-5]})",
                gain(water),
            )
        )

    def draw(file: Path) -> None:
        figure, panels = plots("lender-qos").subplots(1, 2, figsize=(9, 3.2), layout="constrained")
        for rule, of in by_rule.items():
            style, colour = ("-", BLUE) if rule == "water-filling" else ("--", RED)
            caps = [keys(design)["lender_p99_cap"] for design in of[:-1]]
            panels[0].plot(caps, [p99(design["drives"][2:]) for design in of[:-1]], style, marker="o", color=colour, label=rule)
            rates = [sum(drive["throughput_bytes_per_s"] for drive in design["drives"][:2]) / 1e9 for design in of[:-1]]
            panels[1].plot(caps, rates, style, marker="o", color=colour, label=rule)
        panels[0].set_title("p99 of the lenders, µs")
        panels[1].set_title("Throughput of the borrowers, GB/s")
        for panel in panels:
            panel.set_xlabel("lender_p99_cap")
            panel.grid(alpha=0.3)
            panel.set_ylim(bottom=0)
        panels[0].legend(frameon=False)
        save(figure, file)

    titles = ("`lender_p99_cap`", "lenders' p99", "rise", "borrowers", "gain")
    return Page({"caps": table(titles, 0, rows)}, draw)


#: Rows of the table of equal idle lenders: rule, when the host looks, age of reports in periods, noise.
EQUAL = (
    ("literal", "0", "0", "0"),
    ("literal", "0", "0", "0.1"),
    ("literal", "0", "2", "0"),
    ("literal", "0.5", "0", "0"),
    ("literal", "0.5", "2", "0"),
    ("damped", "0", "0", "0"),
    ("damped", "0", "2", "0.1"),
    ("water-filling", "0", "0", "0"),
    ("water-filling", "0", "2", "0.1"),
)

#: The same for unequal busy lenders.
BUSY = tuple((rule, "0.5", *reports) for rule in ("literal", "damped", "water-filling") for reports in (("0", "0"), ("2", "0"), ("0", "0.1")))


def stability() -> Page:
    """Rules of balance after a step of load: docs/stability.md."""
    report = run("stability")
    shared = run(
        "stability",
        set={"harvest.lenders_max": 2, "harvest.processor_offers": 2},
        sweep={"harvest.host_phase": [0.5], "harvest.sensing_delay": [0], "harvest.sensing_noise": [0.0], "jbof.busy_drives": [4]},
    ).designs

    def found(case: tuple[str, ...], busy: str) -> Figures:
        names = ("balance", "host_phase", "sensing_delay", "sensing_noise", "busy_drives")
        wanted = dict(zip(names, (*case, busy), strict=True))
        return next(design for design in report.designs if keys(design) == wanted)

    def reports(case: tuple[str, ...]) -> str:
        age = "fresh" if case[2] == "0" else f"{case[2]} periods old"
        return age if case[3] == "0" else f"{age}, noisy"

    def figures(design: Figures) -> tuple[str, ...]:
        borrowers = design["drives"][:2]
        return swing(borrowers), settled(borrowers), gigabytes(borrowers), us(p99(borrowers))

    looks = {"0": "at once", "0.5": "half a period later"}
    equal = [(case[0], looks[case[1]], reports(case), *figures(found(case, "2"))) for case in EQUAL]
    busy = [(case[0], reports(case), *figures(found(case, "4")), us(p99(found(case, "4")["drives"][2:]))) for case in BUSY]
    both = [(keys(design)["balance"], gigabytes(design["drives"][:2]), *(us(p99(part)) for part in (design["drives"][:2], design["drives"][2:]))) for design in shared]
    shown = ("swing, points", "settled after", "borrowers", "p99")
    timeline = report.tables["timeline"].to_polars()

    def draw(file: Path) -> None:
        cases = [EQUAL[0], EQUAL[2], ("damped", "0", "2", "0"), ("water-filling", "0", "2", "0")]
        figure, panels = plots("stability").subplots(2, len(cases), figsize=(11, 4.6), layout="constrained", sharex=True, sharey=True)
        for (above, below), case in zip(panels.T, cases, strict=True):
            of = timeline.filter(timeline["design"] == found(case, "2")["name"])
            borrower, lender = (of.filter(of["drive"] == f"drive-{number}") for number in (0, 2))
            ms = 1000 * borrower["begin_seconds"]
            above.step(ms, 100 * borrower["redirected_share"], where="post", color="#7f5fa8")
            above.set_title(f"{case[0]}, reports {reports(case)}")
            below.step(ms, 100 * borrower["processor_busy_share"], where="post", color=RED, label="borrower")
            below.step(1000 * lender["begin_seconds"], 100 * lender["processor_busy_share"], "--", where="post", color=BLUE, label="lender")
            below.set_xlabel("ms")
            for panel in (above, below):
                panel.axvline(320, color="grey", linestyle=":")
                panel.grid(alpha=0.3)
        panels[0][0].set_ylabel("sent to the lender, %")
        panels[1][0].set_ylabel("cores busy, %")
        panels[1][-1].legend(frameon=False)
        save(figure, file)

    tables = {
        "equal idle lenders": table(("rule", "host looks", "reports", *shown), 3, equal),
        "busy lenders": table(("rule", "reports", *shown, "lenders' p99"), 2, busy),
        "shared lenders": table(("rule", "borrowers", "their p99", "lenders' p99"), 1, both),
    }
    return Page(tables, draw)


def mixed() -> Page:
    """Lenders that differ: docs/mixed.md."""
    conv, shrunk, *lend = run("mixed").designs

    def cells(design: Figures, name: str, lenders: str) -> tuple[str, ...]:
        borrower, *others = design["drives"]
        lent = ["–" if lenders == "–" else percent(drive["lent_utilization"]) for drive in others]
        return name, lenders, gigabytes(borrower), us(p99(borrower)), *lent, *(us(p99(drive)) for drive in others)

    swept = [cells(design, keys(design)["indicator"], keys(design)["lenders_max"]) for design in lend]
    rows = [cells(shrunk, "none (Shrunk)", "–"), *swept, cells(conv, "none (Conv)", "–")]
    titles = ("indicator", "lenders at most", "borrower", "its p99", "lent by slow", "lent by fast", "p99 of slow", "p99 of fast")
    of = [shrunk, conv, *lend]
    names = ["Shrunk", "Conv", *(f"{name}, {most}" for name, most, *_ in swept)]
    borrowers = [design["drives"][0] for design in of]
    rates = [drive["throughput_bytes_per_s"] / 1e9 for drive in borrowers]
    panels = [("Throughput of the borrower, GB/s", rates, 2), ("p99 of its reads, µs", [p99(drive) for drive in borrowers], 0)]
    return Page({"indicators": table(titles, 1, rows)}, bars("mixed", names, panels, 2))


def in_storage() -> Page:
    """Services on drives and on the host: docs/in-storage-services.md."""
    by_place = {place: run("in-storage", set={"chain.placement": place}).designs for place in ("drive", "host")}
    columns = [(design, place) for place in by_place for design in ("shrunk", "xbof", "conv")]
    names = {"shrunk": "shrunk", "xbof": "XBOF", "conv": "Conv"}
    rows = []
    for services in ("0", "1", "2", "4"):
        cells = [services]
        for design, place in columns:
            one = next(it for it in by_place[place] if it["design"] == design and keys(it)["services"] == services)
            cells.append(f"{gigabytes(one)[:-5]}, {p99(one):,.0f}")
        rows.append(cells)
    titles = ["services", *(f"{names[design]}, on the {place}" for design, place in columns)]
    return Page({"services": table(titles, 0, rows)})


#: Drives of a rack.
SIZES = (24, 48, 96, 192, 255)


def rack() -> Page:
    """Racks of many drives: docs/rack.md."""
    reports = {drives: run("rack", set={"jbof.drives": drives, "jbof.busy_drives": drives}).designs for drives in SIZES}
    enough = run("rack", set={"jbof.drives": SIZES[-1], "jbof.busy_drives": SIZES[-1], "harvest.lenders_max": 1}).designs

    def found(designs: Sequence[Figures], period: str, scan: str = "all") -> Figures:
        wanted = {"period": period, "scan": scan}
        return next(design for design in designs if {key: keys(design).get(key) for key in wanted} == wanted)

    rows = []
    for period in ("10 ms", "1 ms"):
        for drives, designs in reports.items():
            one = found(designs, period)
            borrowers = [drive for drive in one["drives"] if drive["throughput_bytes_per_s"] > 1e9]
            search = one["search"]
            tails = sorted(p99(drive) for drive in borrowers)
            rows.append(
                (
                    f"{drives}",
                    period,
                    f"{sum(drive['throughput_bytes_per_s'] for drive in borrowers) / len(borrowers) / 1e9:.2f}",
                    f"{tails[0]:.0f}–{tails[-1]:.0f} µs",
                    percent(search["core_share"], 2),
                    percent(search["host_core_share"], 3),
                    f"{one['harvest']['contended']:,}",
                    f"{1000 * search['first_redirected_seconds_mean']:.2f} ({1000 * search['first_redirected_seconds_max']:.2f}) ms",
                )
            )
    pairs = []
    for name, designs in (("one lender is enough", enough), ("wants four, gets one", reports[SIZES[-1]])):
        for period in ("10 ms", "1 ms"):
            both = [found(designs, period, scan) for scan in ("all", "leaf-first")]
            pairs.append((name, period, *(percent(one["search"]["core_share"], 3) for one in both), *(f"{one['harvest']['contended']:,}" for one in both)))
    titles = ("drives", "period", "GB/s a borrower", "p99 of the drives", "borrowers' cores scanning", "hosts' cores scanning", "offers lost")
    leaf = (f"{SIZES[-1]} drives", "period", "scanning, all", "scanning, leaf-first", "offers lost, all", "leaf-first")

    def draw(file: Path) -> None:
        figure, (left, right) = plots("rack").subplots(1, 2, figsize=(9, 3.2), layout="constrained")
        for period, style, colour in (("10 ms", "-", BLUE), ("1 ms", "--", RED)):
            of = [found(designs, period) for designs in reports.values()]
            left.plot(SIZES, [100 * one["search"]["core_share"] for one in of], style, marker="o", color=colour, label=f"period of {period}")
            right.plot(SIZES, [one["harvest"]["contended"] for one in of], style, marker="o", color=colour, label=f"period of {period}")
        left.set_title("Core time of borrowers spent scanning, %")
        right.set_title("Offers lost to others")
        for panel in (left, right):
            panel.set_xlabel("drives")
            panel.grid(alpha=0.3)
            panel.set_ylim(bottom=0)
        left.legend(frameon=False)
        save(figure, file)

    tables = {
        "racks": table((*titles, "burst to first redirected, mean (most)"), 0, rows),
        "own leaf first": table(leaf, 1, pairs),
    }
    return Page(tables, draw)


PAGES: dict[str, Callable[[], Page]] = {
    "lender-choice": lender_choice,
    "lender-qos": lender_qos,
    "stability": stability,
    "mixed": mixed,
    "in-storage-services": in_storage,
    "rack": rack,
}


def main() -> None:
    """Prints the tables of pages, writes them, or says which pages show others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", help=f"all without a name: {', '.join(PAGES)}")
    parser.add_argument("--write", action="store_true", help="puts tables and pictures into docs")
    parser.add_argument("--check", action="store_true", help="fails where a page shows other tables")
    asked = parser.parse_args()
    unknown = set(asked.pages) - PAGES.keys()
    if unknown:
        parser.error(f"there is no page {', '.join(sorted(unknown))}; there are {', '.join(PAGES)}")
    old = []
    for name in asked.pages or PAGES:
        page, file = PAGES[name](), DOCS / f"{name}.md"
        print(f"{name}\n", "\n".join(page.tables.values()), sep="\n")
        shown = file.read_text()
        if written(shown, page.tables) != shown:
            old.append(name)
        if asked.write:
            file.write_text(written(shown, page.tables))
            if page.draw:
                page.draw(DOCS / "images" / f"{name}.svg")
    if asked.check and old:
        sys.exit(f"these pages show other tables: {', '.join(old)}; --write renews them")


if __name__ == "__main__":
    main()
