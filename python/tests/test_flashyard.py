"""Python and the program give the same bytes; loads, tables, errors, progress and Ctrl-C of Python."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flashyard
import pytest

ROOT = Path(__file__).resolve().parents[2]

#: The shortest run that is one.
SHORT: dict[str, Any] = {"designs": ["conv", "xbof"], "run.warmup": "1 ms", "run.measure": "2 ms"}


def program() -> str | None:
    """The program of this checkout, built in whatever profile, or the one of FLASHYARD_PROGRAM."""
    built = [ROOT / "target" / profile / "flashyard" for profile in ("release", "quick", "debug")]
    named = os.environ.get("FLASHYARD_PROGRAM")
    found = [Path(named)] if named else [path for path in built if path.exists()]
    # Of an older program the bytes may differ.
    return str(max(found, key=lambda path: path.stat().st_mtime)) if found else None


def without_time(content: bytes) -> bytes:
    """A file without the seconds on the wall, the only figure that two runs need not share."""
    return re.sub(rb'"wall_seconds": ?[0-9.e-]+', b'"wall_seconds":0', content)


def report(**options: Any) -> flashyard.Report:
    changes = {**SHORT, **options.pop("set", {})}
    return flashyard.run("demo", set=changes, progress=False, **options)


def test_files_are_those_of_the_program(tmp_path: Path) -> None:
    path = program()
    if path is None:
        assert "FLASHYARD_REQUIRE" not in os.environ, "no program was built beside the package"
        pytest.skip("no program was built beside the package")
    ours, theirs = tmp_path / "python", tmp_path / "program"
    options = ['--set=designs=["conv", "xbof"]', "--set=run.warmup=1 ms", "--set=run.measure=2 ms"]
    command = [path, "run", "demo", *options, "--sweep", "drive.cores=2,3", "--out", str(theirs)]
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    report(sweep={"drive.cores": [2, 3]}).write(ours)
    names = sorted(path.name for path in theirs.iterdir())
    assert names == sorted(path.name for path in ours.iterdir())
    assert {"report.json", "report.html", "drives.parquet", "explorer.parquet"} <= set(names)
    for name in names:
        assert without_time((ours / name).read_bytes()) == without_time((theirs / name).read_bytes()), name


def test_threads_change_nothing() -> None:
    one, two = (report(threads=threads) for threads in (1, 2))
    assert without_time(one.json().encode()) == without_time(two.json().encode())
    assert str(one).startswith("demo: ")
    assert one.design("xbof")["name"] == "xbof"
    with pytest.raises(KeyError, match="there are conv, xbof"):
        one.design("ttflash")


def test_scenarios_are_files_names_texts_and_mappings(tmp_path: Path) -> None:
    text = flashyard.scenario_text("demo")
    file = tmp_path / "scenario.toml"
    file.write_text(text)
    plain = report().designs
    for scenario in (file, str(file), text):
        assert flashyard.run(scenario, set=SHORT, progress=False).designs == plain
    written = {
        "name": "small",
        "seed": 1,
        "designs": ["conv"],
        "jbof": {"drives": 1, "busy_drives": 1},
        "drive": {"profile": "xbof-4tb"},
        "host": {"profile": "dpu"},
        "prices": {"profile": "2025"},
        "workload": {"pattern": "uniform", "size": "4 KiB", "read_share": 1.0, "depth": 4},
        "run": {"warmup": "1 ms", "measure": "2 ms"},
    }
    of_mapping = flashyard.run(written, progress=False)
    assert flashyard.run(flashyard.to_toml(written), progress=False).designs == of_mapping.designs
    again = flashyard.run(of_mapping.scenario, progress=False)
    assert again.designs == of_mapping.designs, "the resolved scenario runs again"


def test_seeds_have_means_with_intervals() -> None:
    found = report(seeds=3, set={"designs": ["conv"]})
    assert found.content["seeds"]["seeds"] == [1, 2, 3]
    assert set(found.tables["seeds"].to_polars()["seed"]) == {1, 2, 3}


def test_tables_go_to_other_libraries_without_a_copy() -> None:
    import duckdb
    import pyarrow

    tables = report().tables
    assert {"drives", "timeline", "latency_histogram"} <= set(tables)
    histogram = tables["latency_histogram"]
    arrow = histogram.to_pyarrow()
    assert arrow.column_names == histogram.columns == ["design", "up_to_us", "requests"]
    addresses = [pyarrow.table(histogram)["requests"].chunk(0).buffers()[1].address for _ in range(2)]
    assert addresses[0] == addresses[1], "both look at the bytes of the result"
    polars, pandas = histogram.to_polars(), histogram.to_pandas()
    (total,) = duckdb.sql("select sum(requests) from arrow").fetchall()
    assert int(polars["requests"].sum()) == int(pandas["requests"].sum()) == int(total[0]) > 0
    with pytest.raises(KeyError):
        tables["drive"]


#: Requests of one drive, a microsecond apart.
REQUESTS = [("read" if number % 3 else "write", 4096 * (number * 7 % 1000), 4096) for number in range(3000)]


def test_a_load_is_a_table_an_iterator_or_a_file(tmp_path: Path) -> None:
    import polars
    import pyarrow

    changes: dict[str, Any] = {}
    columns = {
        "operation": [operation for operation, _, _ in REQUESTS],
        "offset_bytes": [offset for _, offset, _ in REQUESTS],
        "length_bytes": [length for _, _, length in REQUESTS],
    }

    def one_by_one() -> Iterator[flashyard.Request]:
        yield from REQUESTS

    loads: list[flashyard.Workload] = [pyarrow.table(columns), polars.DataFrame(columns), one_by_one()]
    first, *others = [report(workload=load, set=changes).designs for load in loads]
    assert first[0]["ios"] > 0
    assert all(other == first for other in others)
    # The rows of a file, handed over as a table, are the load that the file is.
    file = tmp_path / "trace.csv"
    iolog = ["fio version 3 iolog", *("0 drive add", "0 drive open")]
    iolog += [f"{number} drive {operation} {offset} {length}" for number, (operation, offset, length) in enumerate(REQUESTS)]
    file.write_text("\n".join([*iolog, f"{len(REQUESTS)} drive close", ""]))
    table = flashyard.read_trace(file, progress=False)
    assert len(table) == len(REQUESTS) and table.columns[0] == "time_ns"
    assert flashyard.trace_info(file, progress=False)["rows"] == len(REQUESTS)
    of_file = report(set={**changes, "workload.trace": str(file)}).designs
    assert report(workload=table, set=changes).designs == of_file


def test_a_load_that_is_none_says_why() -> None:
    import pyarrow

    good = {"operation": ["read"], "offset_bytes": [0], "length_bytes": [4096]}
    wrong: list[tuple[dict[str, list[Any]], str]] = [
        ({**good, "operation": ["erase"]}, "row 0.*'?\"?erase.*give read, write, trim or flush"),
        ({**good, "offset_bytes": [-1]}, "column offset_bytes"),
        ({**good, "length_bytes": [None]}, "column length_bytes"),
        ({key: good[key] for key in ("operation", "offset_bytes")}, "no column length_bytes"),
        ({key: [] for key in good}, "column|no rows"),
    ]
    for columns, message in wrong:
        with pytest.raises(ValueError, match=message):
            report(workload=pyarrow.table(columns))


def test_rows_of_a_load_that_are_none_are_named() -> None:
    import pyarrow

    def refused(told: str, **columns: Any) -> None:
        rows = {"operation": ["read"] * 3, "offset_bytes": [0, 4096, 8192], "length_bytes": [4096] * 3} | columns
        with pytest.raises(ValueError, match=told):
            flashyard.run("demo", workload=pyarrow.table(rows), set=SHORT, progress=False)

    refused("row 2 of the table: time_ns goes back from 5 to 4", time_ns=[1, 5, 4])
    refused("row 1 of the table: column offset_bytes is 4095.5, give a whole number", offset_bytes=[0.0, 4095.5, 1.0])
    refused("row 1 of the table: column offset_bytes is -4096, give a value of", offset_bytes=[0, -4096, 0])
    refused("row 2 of the table: column length_bytes has no value", length_bytes=[4096, 4096, None])
    with pytest.raises(ValueError, match="request 1: 2 members, give"):
        flashyard.run("demo", workload=[("read", 0, 4096), ("read", 0)], set=SHORT, progress=False)  # type: ignore[list-item]


def test_values_are_toml() -> None:
    from flashyard import _calls

    assert _calls._value(["😀.csv", "a\x7fb"]) == '["😀.csv", "a\\u007fb"]'
    with pytest.raises(flashyard.ScenarioError, match="finite"):
        _calls._value(float("inf"))


def test_a_life_refuses_what_the_program_refuses() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"drive_writes": -1.0}, "drive_writes: -1"),
        ({"drive_writes": float("nan")}, "drive_writes: NaN"),
        ({"fast_forward": 4.0, "adaptive": 3}, "not both"),
        ({"set": {"life.prediction": "two-point"}}, "life.prediction=two-point has no effect"),
    ]
    for options, told in wrong:
        with pytest.raises(ValueError, match=told):
            flashyard.age("ageing", progress=False, **options)


def test_mistakes_are_exceptions_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(flashyard.ScenarioError, match="drive.cores") as mistake:
        report(set={"drive.cores": 0})
    assert mistake.value.key == "drive.cores" or "drive.cores" in str(mistake.value)
    file = tmp_path / "scenario.toml"
    file.write_text('name = "x"\ndesigns = ["conv"]\n[drive]\nprofle = "r8"\n')
    with pytest.raises(flashyard.ScenarioError, match="line 4"):
        flashyard.run(file, progress=False)
    with pytest.raises(FileNotFoundError, match="carries demo"):
        flashyard.run("dmeo", progress=False)
    with pytest.raises(FileNotFoundError):
        flashyard.run(tmp_path / "not-there.toml", progress=False)
    with pytest.raises(flashyard.ScenarioError, match="xbof"):
        flashyard.reproduce("xbo", progress=False)
    with pytest.raises(flashyard.ScenarioError):
        flashyard.to_toml({"name": object()})
    with pytest.raises(FileNotFoundError):
        flashyard.trace_info(tmp_path / "not-there", progress=False)
    (tmp_path / "noise").write_bytes(b"\x00\x01\x02 no trace")
    with pytest.raises(ValueError, match="noise"):
        flashyard.trace_info(tmp_path / "noise", progress=False)


def test_a_life_and_a_study(tmp_path: Path) -> None:
    small = {"drive.blocks_per_plane": 120, "drive.pages_per_block": 32, "life.random_fills": 1}
    life = flashyard.age(ROOT / "scenarios/wear-leveling/scenario.toml", set=small, drive_writes=2.0, progress=False)
    assert life.record["last"]["host_slots"] >= 2 * life.record["drive_slots"]
    assert len(life.tables["life"]) > 1 and "erases" in life.tables["erase_counts"].columns
    life.save(tmp_path / "aged")
    assert (tmp_path / "aged").stat().st_size > 0
    study = flashyard.reproduce("leapio", "reads-loss", out=tmp_path / "study", progress=False)
    assert [number["id"] for number in study.comparisons] == ["reads-loss"]
    assert study.records and "reads-loss" in str(study)
    assert (tmp_path / "study" / "comparison.json").read_text() == study.json()
    kept = list((tmp_path / "study").glob("runs-*.jsonl"))
    assert len(kept) == 1, "finished runs are kept under the number of this very library"


def test_progress_is_told_and_its_exceptions_stop_the_run() -> None:
    told: list[tuple[float, str]] = []
    long = {"run.measure": "100 ms"}
    flashyard.run("demo", set={**SHORT, **long}, progress=lambda share, word: told.append((share, word)))
    assert told and all(0.0 <= share <= 1.0 for share, _ in told)
    assert [share for share, _ in told] == sorted(share for share, _ in told)

    def stops(share: float, word: str) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        flashyard.run("demo", set={**SHORT, "run.measure": "10 s"}, progress=stops)


def test_ctrl_c_ends_a_run() -> None:
    # A shell's background jobs begin with the signal ignored, and would never end here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        # Hours of work.
        report(set={"run.measure": "1000 s"})
    timer.join()


def test_types_hold(tmp_path: Path) -> None:
    if shutil.which("mypy") is None and not (Path(sys.prefix) / "bin" / "mypy").exists():
        pytest.skip("mypy is not installed")
    sample = tmp_path / "sample.py"
    sample.write_text(
        "import flashyard\n"
        "report = flashyard.run('demo', sweep={'drive.cores': [2, 3]})\n"
        "names: list[str] = [str(design['name']) for design in report.designs]\n"
        "rows: int = len(report.tables['drives'])\n"
    )
    rules = ["--config-file", str(ROOT / "python" / "pyproject.toml")]
    package = ["mypy", *rules, "-p", "flashyard"]
    checks = [["mypy", *rules, str(sample)], ["mypy.stubtest", "flashyard._native", "--ignore-missing-stub"]]
    studies = ["mypy", *rules, *map(str, (ROOT / "python" / "studies").glob("*.py"))]
    for check in [*checks, package, studies]:
        done = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    sample.write_text("import flashyard\nflashyard.run('demo', sweep=3)\n")
    done = subprocess.run([sys.executable, "-m", *checks[0]], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1 and "sweep" in done.stdout, done.stdout


def test_the_package_knows_its_carried_scenarios() -> None:
    assert {"demo", "explorer"} <= set(flashyard.scenarios())
    assert {"xbof", "leapio"} <= set(flashyard.studies())
    assert flashyard.schema()["type"] == "object"
    with pytest.raises(KeyError, match="there are"):
        flashyard.scenario_text("xbo")


def test_a_data_sheet_becomes_a_profile_that_runs() -> None:
    figures = {"read-alone": "115 us", "read-sequential": "3.2 GB/s", "write-alone": "20 us"}
    found = flashyard.fit(capacity="4 TB", figures=figures, progress=False)
    assert found.worst < 0.1, str(found)
    assert [one["measured"] for one in found.figures] == [115.0, 3.2e9, 20.0]
    assert {one["key"] for one in found.parameters} == {"drive.read_time", "drive.read_rate", "host.submit_latency"}
    assert found.settings["drive"]["capacity"] == "4 TB" and "host.submit_latency" in found.settings
    report = flashyard.run("demo", set={**found.settings, "designs": ["conv"]}, progress=False)
    assert report.designs and "read_time" in report.scenario


def test_a_fit_says_which_figure_is_wrong() -> None:
    with pytest.raises(ValueError, match="the unit is missing"):
        flashyard.fit(capacity="4 TB", figures={"read-alone": "115"}, progress=False)
    with pytest.raises(FileNotFoundError, match=r"not-there\.json"):
        flashyard.fit("not-there.json", capacity="4 TB", progress=False)
    with pytest.raises(ValueError, match="no figure to fit"):
        flashyard.fit(capacity="4 TB", progress=False)
