"""Sweeps: on threads and on Ray alike, resumed, and with workers that are killed."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import flashyard
import pytest
from flashyard import _sweep

#: Runs of a second or so.
SHORT: dict[str, Any] = {"designs": ["conv", "shrunk"], "run.warmup": "1 ms", "run.measure": "10 ms"}
AXES: dict[str, Any] = {"drive.cores": [3, 6], "seed": range(1, 4)}


def sweep(out: Path, **options: Any) -> flashyard.Sweep:
    return flashyard.sweep("demo", AXES, out=out, set=SHORT, **{"progress": False, **options})


def contents(found: flashyard.Sweep) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in found.files}


def test_points_are_kept_and_an_interrupted_sweep_goes_on(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stops(share: float, word: str) -> None:
        if share >= 0.3:
            raise Enough

    with pytest.raises(Enough):
        sweep(tmp_path / "a", progress=stops)
    kept = {file: file.stat().st_mtime_ns for file in (tmp_path / "a").glob("*.parquet")}
    assert 2 <= len(kept) < 6
    found = sweep(tmp_path / "a", workers=2)
    assert len(found) == 6 and all(file.stat().st_mtime_ns == time for file, time in kept.items())
    assert contents(found) == contents(sweep(tmp_path / "b", workers=1))
    table = found.to_polars()
    assert table.height == 12 and table["set.drive.cores"].to_list()[:2] == ["3", "3"]
    alone = flashyard.run("demo", set=SHORT | {"drive.cores": 6, "seed": 2}, progress=False)
    row = table.filter((table["set.drive.cores"] == "6") & (table["set.seed"] == "2") & (table["name"] == "conv"))
    assert row["ios"].to_list() == [alone.design("conv")["ios"]]
    # Another setting is another point.
    other = flashyard.sweep("demo", {"seed": [1]}, out=tmp_path / "a", set=SHORT, progress=False)
    assert other.files[0] not in found.files


def test_points_of_other_profiles_and_other_traces_are_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "profiles" / "drives").mkdir(parents=True)
    profile, trace = tmp_path / "profiles" / "drives" / "mine.toml", tmp_path / "mine.csv"
    scenario = tmp_path / "scenario.toml"
    scenario.write_text('[workload]\ntraces = ["mine.csv#csv", \'single.csv\', "parts"]\n')
    profile.write_text("cores = 2\n")
    trace.write_text("one\n")
    swept, nested, single, part = (tmp_path / name for name in ("swept.csv", "nested.csv", "single.csv", "parts/t.blktrace.0"))
    part.parent.mkdir()
    for file in (swept, nested, single, part):
        file.write_text("one\n")

    def key() -> str:
        text = scenario.read_text()
        return _sweep._key(text, _sweep._around(scenario, text), {}, {"workload.fio": str(swept), "traces": f'["{nested}"]'}, None)

    known = [key()]
    assert key() == known[0]
    for file, text in [(profile, "cores = 3\n"), (trace, "one\ntwo\n"), *((file, "one\ntwo\n") for file in (swept, nested, single, part))]:
        file.write_text(text)
        known.append(key())
    (profile.parent / "other.toml").write_text("cores = 3\n")
    known.append(key())
    assert len(set(known)) == len(known), known


def test_a_directory_named_like_a_word_of_the_scenario_keeps_its_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = flashyard.sweep("demo", {"seed": [1]}, out="xbof", set=SHORT, progress=False)
    time = first.files[0].stat().st_mtime_ns
    again = flashyard.sweep("demo", {"seed": [1]}, out="xbof", set=SHORT, progress=False)
    assert again.files == first.files and again.files[0].stat().st_mtime_ns == time
    assert len(list((tmp_path / "xbof").iterdir())) == 1


def test_axes_without_values_or_with_one_twice_are_refused(tmp_path: Path) -> None:
    for values, told in [([], "has no values"), ([1, 2, 1], "has 1 twice")]:
        with pytest.raises(ValueError, match=told):
            flashyard.sweep("demo", {"seed": values}, out=tmp_path, set=SHORT, progress=False)


def test_a_mistake_at_a_point_is_an_exception(tmp_path: Path) -> None:
    with pytest.raises(flashyard.ScenarioError, match="drive.cores"):
        flashyard.sweep("demo", {"drive.cores": [0]}, out=tmp_path, set=SHORT, progress=False)


def test_a_point_with_a_design_that_fails_is_not_kept(tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(Path(__file__).parents[2] / "scenarios" / "mixed", mixed)
    scenario = mixed / "scenario.toml"
    text = scenario.read_text()
    scenario.write_text(text.replace("drive.cores = 2 ", "drive.blocks_per_plane = 512 # [A] unequal\ndrive.cores = 2 "))
    designs = {"designs": [["shrunk"], ["vh", "shrunk"]]}
    with pytest.raises(flashyard.FlashyardError, match="1 of 2 points failed"):
        flashyard.sweep(scenario, designs, out=tmp_path / "out", set={"run.measure": "2 ms"}, progress=False)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1


def workers() -> list[int]:
    """Processes of Ray that carry out a point of this test: other sweeps on this machine go on."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status, command = (entry / "status").read_text(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = int(status.split("PPid:")[1].split()[0])
            if command.startswith(b"ray::_point"):
                found.append(int(entry.name))

    def is_ours(process: int) -> bool:
        while process > 1 and process != os.getpid():
            process = parents.get(process, 0)
        return process == os.getpid()

    return [process for process in found if is_ours(process)]


def test_ray_gives_the_bytes_of_threads_although_workers_are_killed(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    killed: list[int] = []

    def kills(share: float, word: str) -> None:
        if len(killed) < 2:
            for process in workers()[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)

    found = sweep(tmp_path / "ray", on="ray", workers=2, progress=kills)
    assert killed, "no worker was there to be killed"
    assert contents(found) == contents(sweep(tmp_path / "threads"))
