"""The calls of the package."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from . import _native
from ._errors import ScenarioError
from ._progress import Progress, chosen
from ._results import Fit, Life, Report, Study
from ._table import ArrowTable, Table

#: A file, the name of a carried scenario, the text of one (anything with a line break), or a mapping of its sections.
ScenarioLike: TypeAlias = str | os.PathLike[str] | Mapping[str, Any]

#: A request: operation, offset in bytes, length in bytes, and perhaps the time of its arrival in nanoseconds and its volume.
Request: TypeAlias = tuple[str, int, int] | tuple[str, int, int, int] | tuple[str, int, int, int, int]

#: A load: a table with the columns of ``flashyard trace convert``, or requests one by one.
Workload: TypeAlias = ArrowTable | Iterable[Request]


class _Asked(TypedDict):
    path: str | None
    text: str | None
    settings: list[str]
    sweeps: list[str]
    jobs: str | None
    seed: int | None
    seeds: int | None
    threads: int | None


def _asked(
    scenario: ScenarioLike,
    set: Mapping[str, Any] | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    fio: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    threads: int | None = None,
) -> _Asked:
    path, text = _source(scenario)
    return {
        "path": path,
        "text": text,
        "settings": [f"{key}={_value(value)}" for key, value in (set or {}).items()],
        "sweeps": [f"{key}={','.join(map(_axis_value, values))}" for key, values in (sweep or {}).items()],
        "jobs": None if fio is None else os.fspath(fio),
        "seed": seed,
        "seeds": seeds,
        "threads": threads,
    }


def _source(scenario: ScenarioLike) -> tuple[str | None, str | None]:
    if isinstance(scenario, Mapping):
        return None, to_toml(scenario)
    if isinstance(scenario, str) and "\n" in scenario:
        return None, scenario
    return os.fspath(scenario), None


def _axis_value(value: Any) -> str:
    """A value among others of an axis, whose commas, quotes and brackets are its own."""
    text = _value(value)
    return _text(text) if isinstance(value, str | os.PathLike) and any(mark in text for mark in ",\"'()[]{}") else text


def _value(value: Any) -> str:
    """A value as ``--set`` takes it: plain texts as they are, all else as TOML.

    Raises:
        ScenarioError: a value that TOML does not have.
    """
    if isinstance(value, str):
        return value
    if hasattr(value, "item") and not hasattr(value, "__len__"):
        # A single number of numpy.
        value = value.item()
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, float) and not math.isfinite(value):
        raise ScenarioError(f"a scenario cannot hold {value!r}: give a number that is finite")
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)} = {_nested(one)}" for key, one in value.items()) + "}"
    if not isinstance(value, Iterable):
        raise ScenarioError(f"a scenario cannot hold {value!r}: give a text, a number, a list or a mapping")
    return "[" + ", ".join(_nested(one) for one in value) + "]"


def _nested(value: Any) -> str:
    return _text(value) if isinstance(value, str) else _value(value)


def _text(value: str) -> str:
    """A text as TOML: as JSON has it, but for letters beyond ASCII and for the control character that JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def to_toml(scenario: Mapping[str, Any]) -> str:
    """A scenario of sections and keys as the text of a scenario file.

    Raises:
        ScenarioError: a value that TOML does not have.
    """
    try:
        return _native.toml_of_json(json.dumps(scenario, default=os.fspath))
    except TypeError as error:
        raise ScenarioError(f"a scenario cannot hold this: {error}") from error


def run(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,
    sweep: Mapping[str, Sequence[Any]] | None = None,
    workload: Workload | None = None,
    fio: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    threads: int | None = None,
    progress: bool | Progress = True,
) -> Report:
    """Runs the designs of a scenario, as ``flashyard run`` does, with the same results.

    Args:
        scenario: a file, the name of a carried scenario (:func:`scenarios`), its text, or its sections as a mapping.
        set: keys to change, such as ``{"drive.cores": 3}``.
        sweep: keys with the values to try, each with each, such as ``{"drive.cores": [2, 3, 6]}``.
        workload: requests in place of the scenario's load: a table that speaks Arrow, with the columns ``operation`` ("read", "write",
            "trim" or "flush"), ``offset_bytes`` and ``length_bytes``, perhaps ``time_ns`` (arrival since the first row) and ``volume``;
            or an iterable of ``(operation, offset_bytes, length_bytes[, time_ns[, volume]])``, which is read to its end first.
        fio: a job file of fio in place of the scenario's load.
        seed: seed of all random streams.
        seeds: so many seeds, from that one on: ``report.content["seeds"]`` has means with confidence intervals.
        threads: designs run at once; all cores without it. Results do not depend on it.
        progress: whether to show a bar (of tqdm, where it is installed), or a callable that gets the share that is done, and a word.

    Raises:
        ScenarioError: a mistake in the scenario, with file, line and key.
        FileNotFoundError: the scenario is neither a file nor carried.
        FlashyardError: no run came to an end.
        ValueError: a workload with a row that is no request.
        KeyboardInterrupt: Ctrl-C; the runs are stopped.

    Warns:
        RuntimeWarning: a run has failed, or broke a law; its figures are missing, or cannot be trusted.
    """
    load = None if workload is None else _table_of(workload)
    report = _run(_asked(scenario, set, sweep, fio, seed, seeds, threads), load, progress)
    for line in report.wrong:
        warnings.warn(line, RuntimeWarning, stacklevel=2)
    return report


def _run(asked: Any, load: object, progress: bool | Progress) -> Report:
    """A run without warnings, for those who look at what is wrong themselves."""
    tell, end = chosen(progress)
    try:
        return Report(_native.run(asked, load, tell))
    finally:
        end()


def _table_of(workload: Workload) -> object:
    if hasattr(workload, "__arrow_c_stream__"):
        return workload
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("a workload of single requests needs pyarrow; install it, or give an Arrow table") from error
    requests = [tuple(request) for request in workload]
    for row, request in enumerate(requests):
        if not 3 <= len(request) <= 5:
            form = "(operation, offset_bytes, length_bytes[, time_ns[, volume]])"
            raise ValueError(f"workload, request {row}: {len(request)} members, give {form}")
    rows = [(*request, *_DEFAULTS[len(request) - 3 :]) for request in requests]
    names = ("operation", "offset_bytes", "length_bytes", "time_ns", "volume")
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(names)
    return pyarrow.table(dict(zip(names, map(list, columns), strict=True)))


#: Time and volume of a request that has none.
_DEFAULTS = (0, 0)


def reproduce(
    study: str,
    *ids: str,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool | Progress = True,
) -> Study:
    """Reproduces the published results of a study (:func:`studies`), all or those with these ids.

    Args:
        study: its name, such as ``xbof``.
        ids: numbers of it; all without any.
        out: a directory for page and runs; finished runs are kept there, and not repeated.
        threads: runs at once; all cores without it.
        progress: as of :func:`run`.

    Raises:
        ScenarioError: there is no such study or number.
        KeyboardInterrupt: Ctrl-C; what is finished is kept in ``out``.
    """
    tell, end = chosen(progress)
    try:
        return Study(_native.reproduce(study, list(ids), None if out is None else Path(out), threads, tell))
    finally:
        end()


def age(
    scenario: ScenarioLike,
    *,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    drive_writes: float | None = None,
    fast_forward: float | None = None,
    adaptive: int | None = None,
    progress: bool | Progress = True,
) -> Life:
    """Ages the drive of a scenario, as ``flashyard age`` does.

    Args:
        scenario: as of :func:`run`; its drive, workload and ``[life]`` count.
        set: keys to change.
        seed: seed of all random streams.
        drive_writes: ends after the whole drive was written so many times; at its death without it.
        fast_forward: simulates one part in so many of the time and predicts the wear of the others.
        adaptive: predicts as far as write amplification is steady, so many periods at most.
        progress: as of :func:`run`.

    Raises:
        ScenarioError: a mistake in the scenario, or one without a drive.
        ValueError: drive writes that are none, both ways of going forward, or a key of going forward without one.
        KeyboardInterrupt: Ctrl-C.
    """
    tell, end = chosen(progress)
    try:
        return Life(_native.age(_asked(scenario, set, seed=seed), drive_writes, fast_forward, adaptive, tell))
    finally:
        end()


def fit(
    *results: str | os.PathLike[str],
    capacity: str,
    figures: Mapping[str, str] | None = None,
    known: Mapping[str, Any] | None = None,
    host: str = "linux",
    threads: int | None = None,
    progress: bool | Progress = True,
) -> Fit:
    """Makes the profile of a drive from what was measured of it, as ``flashyard fit`` does.

    Args:
        results: files of ``fio --output-format=json`` with the loads that ``flashyard fit --jobs`` prints.
        capacity: of the drive, such as ``"1.92 TB"``.
        figures: what a data sheet or a review states: ``read-alone``, ``read-many``, ``read-sequential``, ``write-alone``, ``write-many`` or
            ``write-sequential`` with a value, such as ``{"write-many": "62.5 k/s"}``.
        known: other keys of ``[drive]`` that are known and not moved, such as ``{"channels": 8}``.
        host: profile of the host that measured.
        threads: runs at once; all cores without it.
        progress: as of :func:`run`.

    Raises:
        ValueError: a file that is no result of fio, a figure that cannot be read, or none at all.
        FileNotFoundError: there is no such file.
        ScenarioError: known keys that make no drive.
        KeyboardInterrupt: Ctrl-C.
    """
    tell, end = chosen(progress)
    stated = [f"{load}={value}" for load, value in (figures or {}).items()]
    keys = [("capacity", capacity), *((key, _value(value)) for key, value in (known or {}).items())]
    try:
        return Fit(*_native.fit([Path(one) for one in results], stated, keys, host, threads, tell))
    finally:
        end()


def trace_info(
    file: str | os.PathLike[str], *, format: str | None = None, progress: bool | Progress = True
) -> dict[str, Any]:
    """Describes a trace, as ``flashyard trace info --json`` does: two dozen formats, told from the content.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no trace, with file and line.
    """
    tell, end = chosen(progress)
    try:
        found: dict[str, Any] = json.loads(_native.trace_info(Path(file), format, tell))
        return found
    finally:
        end()


def read_trace(
    file: str | os.PathLike[str], *, format: str | None = None, progress: bool | Progress = True
) -> Table:
    """Reads the requests of a trace as a table, which :func:`run` takes as a workload. It is in memory as a whole: some 50 bytes a request.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is no trace, with file and line.
    """
    tell, end = chosen(progress)
    try:
        return Table(_native.read_trace(Path(file), format, tell))
    finally:
        end()


def scenarios() -> list[str]:
    """Names of the scenarios that the package carries."""
    return _native.scenarios()


def scenario_text(name: str) -> str:
    """The text of a carried scenario.

    Raises:
        KeyError: there is none of that name.
    """
    text = _native.scenario_text(name)
    if text is None:
        raise KeyError(f"{name}; there are {', '.join(scenarios())}")
    return text


def studies() -> list[str]:
    """Names of the studies that :func:`reproduce` knows."""
    return _native.studies()


def schema() -> dict[str, Any]:
    """The JSON Schema of scenarios: every key with its range."""
    found: dict[str, Any] = json.loads(_native.schema())
    return found
