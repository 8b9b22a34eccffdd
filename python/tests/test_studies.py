"""The studies, on fleets of a few drives."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from types import ModuleType

import flashyard
import pytest

STUDIES = Path(__file__).resolve().parents[1] / "studies"


sys.path.insert(0, str(STUDIES))  # As where they are run: they share a module.


def study(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"study_{name}", STUDIES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_tiny_fleet_lives_and_its_ends_add_up(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    fleet = study("fleet")
    tiny = {"arrays": 2, "drives": 8, "months": 24, "progress": False}
    fleets = fleet.run(tmp_path, 3, "threads", 2, **tiny)
    kept = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.parquet")}
    assert len(kept) == 9
    assert fleet.run(tmp_path, 3, "threads", 2, **tiny).keys() == fleets.keys()
    assert all(file.stat().st_mtime_ns == time for file, time in kept.items())
    for name, one in fleets.items():
        assert one.months == 24 and one.all_drives == 48
        ended = sum(sum(point) for point in one.of("ended"))
        left = sum(point[-1] for point in one.of("originals"))
        # Each first drive that is not left has ended.
        assert 0 < 48 - left <= ended, name
        for column in ("mean_us", "p99_us"):
            parts = [one.of(f"{column}_{part}") for part in fleet.FAN]
            assert all(list(month) == sorted(month) for point in zip(*parts, strict=True) for month in zip(*point, strict=True))
        # A stock of an order of one month covers all months but one in a hundred, and more are too many.
        each, all_ = one.stock(1)
        months = [month for point in one.of("ended") for month in point]
        assert sum(month <= each for month in months) >= 0.99 * len(months) > sum(month < each for month in months)
        assert all_ == max(sum(month) for month in zip(*one.of("ended"), strict=True))
    assert fleets["all new"].of("age_months")[0][0] == 0.0 < fleets["mixed ages"].of("age_months")[0][0]
    found = fleet.tables(fleets)
    page = "".join(f"<!-- generated: {name} -->\nold\n<!-- end of {name} -->\n" for name in found)
    shown = fleet.written(page, found)
    assert "old" not in shown and all(table in shown for table in found.values())
    for file in (tmp_path / "a.svg", tmp_path / "b.svg"):
        fleet.draw(fleets, file)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert fleet.difference(fleets).half > 0.0


def test_means_have_the_interval_of_student() -> None:
    fleet = study("fleet")
    # 2.776 is the 97.5th percentile of Student's t for four degrees of freedom.
    mean = fleet.mean_of([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean.value == 3.0 and mean.half == pytest.approx(2.776 * math.sqrt(2.5 / 5), rel=0.01)
    assert fleet.rank([3.0, 1.0, 2.0], 0.5) == 2.0 and fleet.rank(list(range(1, 101)), 0.99) == 99


def test_a_sweep_keeps_a_table(tmp_path: Path) -> None:
    size = {"designs": ["last"], "fleet.arrays": 2, "fleet.drives": 2, "fleet.months": 4}
    found = flashyard.sweep("ageing-fleet", {"seed": [1, 2]}, out=tmp_path, set=size, table="months", progress=False)
    table = found.to_polars()
    assert table.height == 8 and table.columns[0] == "set.seed"
    alone = flashyard.run("ageing-fleet", set=size | {"seed": 2}, progress=False).tables["months"].to_polars()
    assert table.filter(table["set.seed"] == "2").drop("set.seed").equals(alone)
    # Figures of designs are other points.
    assert len(flashyard.sweep("ageing-fleet", {"seed": [1]}, out=tmp_path, set=size, progress=False).to_polars()) == 1
    with pytest.raises(KeyError, match="none"):
        flashyard.sweep("ageing-fleet", {"seed": [1]}, out=tmp_path, set=size, table="none", progress=False)


def test_ray_and_threads_are_timed(tmp_path: Path) -> None:
    rate = study("rate")
    whole, steady = rate.rates("threads", 2, 4, 2, tmp_path)
    assert 0.0 < whole and 0.0 < steady


def test_the_page_on_mixed_drives_shows_what_its_runs_give(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    lending = study("lending")
    page, shown = lending.mixed(), (lending.DOCS / "mixed.md").read_text()
    assert lending.written(shown, page.tables) == shown, "python/studies/lending.py mixed --write renews it"
    page.draw(tmp_path / "mixed.svg")
    assert (tmp_path / "mixed.svg").read_bytes().startswith(b"<?xml")


def test_figures_of_lending_are_what_their_names_say() -> None:
    lending = study("lending")
    drives = [{"throughput_bytes_per_s": rate * 1e9, "latency_us": {"p99": rate}, "redirected_settled_seconds": 0.0} for rate in (1, 3)]
    assert lending.evenness(drives) == 0.8 and lending.evenness(drives[:1]) == 1.0
    assert (lending.gigabytes(drives), lending.p99(drives), lending.settled(drives)) == ("4.00 GB/s", 3.0, "0 ms")
    assert lending.settled([*drives, {"redirected_settled_seconds": None}]) == "never"
    assert lending.table(("a", "b"), 1, [("x", "1")]) == "| a | b |\n| --- | --: |\n| x | 1 |\n"
    assert lending.keys({"point": ["harvest.balance=damped"]}) == {"balance": "damped"}
