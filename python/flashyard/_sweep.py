"""Sweeps whose points are kept one by one, on the threads of this machine or on a Ray cluster."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._calls import ScenarioLike, _asked, _run, _source, _value
from ._errors import FlashyardError
from ._progress import Progress, chosen

if TYPE_CHECKING:
    import polars
    import pyarrow

#: A point of a sweep: keys with their values, as texts.
Point = dict[str, str]


class Sweep:
    """A sweep that is finished: a Parquet file for each point, in a directory."""

    def __init__(self, directory: Path, files: list[Path]) -> None:
        self.directory = directory
        self.files = files

    def to_pyarrow(self) -> pyarrow.Table:
        """Figures of all designs at all points, or the rows of the table that was asked for, in the order of the points."""
        import pyarrow
        import pyarrow.parquet

        tables = [pyarrow.parquet.read_table(file) for file in self.files]
        return pyarrow.concat_tables(tables, promote_options="permissive")

    def to_polars(self) -> polars.DataFrame:
        """The same as a frame of Polars."""
        import polars

        frame = polars.from_arrow(self.to_pyarrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def __len__(self) -> int:
        return len(self.files)

    def __repr__(self) -> str:
        return f"Sweep({len(self)} points in {self.directory})"


def sweep(
    scenario: ScenarioLike,
    axes: Mapping[str, Sequence[Any]],
    *,
    out: str | os.PathLike[str],
    set: Mapping[str, Any] | None = None,
    table: str | None = None,
    on: str = "threads",
    workers: int | None = None,
    progress: bool | Progress = True,
) -> Sweep:
    """Runs every combination of values, and keeps each point in ``out`` as it is finished. Points that are there already are not run
    again, so that a sweep that was interrupted goes on where it ended.

    Args:
        scenario: as of :func:`flashyard.run`. On other machines its profiles and traces must be where they are here.
        axes: keys with the values to try, each with each; ``{"seed": range(100)}`` is one too.
        out: the directory, made where it is missing; a Parquet file for each point.
        set: keys to change at all points.
        table: keeps this table of :attr:`Report.tables` at each point in place of the figures of designs.
        on: ``"threads"`` of this machine, ``"ray"`` for a Ray cluster on this machine, or the address of one
            (``"ray://head:10001"``, ``"auto"``). A worker that is lost is replaced, and its point run again. Results are the same, byte for byte.
        workers: points at once; all cores without it.
        progress: as of :func:`flashyard.run`.

    Raises:
        ScenarioError: a mistake at one of the points.
        FlashyardError: designs failed, or broke a law, at points that the message names. Nothing is kept of these; the others are finished.
        KeyError: runs of this scenario have no such table.
        ValueError: an axis without values, or with one twice.
        ImportError: Ray is asked for and not installed, or pyarrow is missing.
        KeyboardInterrupt: Ctrl-C; what is finished is kept.
    """
    for key, values in axes.items():
        if not values:
            raise ValueError(f"axes: {key} has no values, give one or more")
        texts = [_value(value) for value in values]
        if twice := next((text for text in texts if texts.count(text) > 1), None):
            raise ValueError(f"axes: {key} has {twice} twice")
    directory = Path(out)
    directory.mkdir(parents=True, exist_ok=True)
    path, text = _source(scenario)
    origin = text if text is not None else _text_of(path or "")
    base = {key: _value(value) for key, value in (set or {}).items()}
    points: list[Point] = [
        dict(zip(axes, map(_value, values), strict=True)) for values in itertools.product(*axes.values())
    ]
    around = _around(Path(path) if path else None, origin)
    keys = (_key(origin, around, base, point, table) for point in points)
    files = [directory / f"{number:06}-{key}.parquet" for number, key in enumerate(keys)]
    missing = [number for number, file in enumerate(files) if not file.exists()]
    tell, end = chosen(progress)
    finished = len(points) - len(missing)
    failed: dict[int, str] = {}
    carry_out: Callable[[str, Common, Work, int], Iterator[tuple[int, pyarrow.Table | str]]] = (
        _on_threads if on == "threads" else _on_ray
    )
    try:
        work = [(number, points[number]) for number in missing]
        for number, rows in carry_out(on, (path or origin, base, table), work, workers or 0):
            if isinstance(rows, str):
                failed[number] = rows
            else:
                _write(files[number], rows)
            finished += 1
            if tell is not None:
                tell(finished / len(points), "points")
    finally:
        end()
    if failed:
        told = [f"{points[number]}: {why}" for number, why in sorted(failed.items())]
        raise FlashyardError(f"{len(failed)} of {len(points)} points failed:\n" + "\n".join(told[:TOLD]))
    return Sweep(directory, files)


def _text_of(path: str) -> str:
    """The text of a scenario, as far as it is a file: what a point is known by."""
    return Path(path).read_text() if Path(path).is_file() else path


def _around(path: Path | None, text: str) -> list[Any]:
    """The files that a scenario may read beside its own: profiles beside and above it, and those that it names."""
    place = (path.parent if path and path.is_file() else Path()).resolve()
    profiles = [
        [str(file), hashlib.sha256(file.read_bytes()).hexdigest()]
        for directory in (place, *place.parents)
        for file in sorted(directory.glob("profiles/*/*.toml"))
    ]
    return [str(place), profiles, [_state(name, place) for name in _texts(text)]]


def _texts(text: str) -> list[str]:
    """What is quoted in a text of TOML, in order."""
    return [double or single for double, single in re.findall(r"""["]([^"\n]+)["]|'([^'\n]+)'""", text)]


def _state(name: str, place: Path) -> list[Any]:
    """What tells a file or the files of a directory from earlier ones of its name, be it in the working directory or beside the scenario;
    nothing for other texts."""
    for whole in {name, name.rpartition("#")[0]} - {""}:
        for file in (Path(whole), place / whole):
            # A text with a zero or of great length is no name.
            with contextlib.suppress(OSError, ValueError):
                if file.is_file() and ".blktrace." in file.name:
                    # The files of the other processors are read with it.
                    return [_stamp(inner) for inner in sorted(file.parent.glob(file.name.rpartition(".")[0] + ".*"))]
                if file.is_file():
                    return _stamp(file)
                if found := sorted(file.glob("*.blktrace.*")):
                    # A directory is read for the events of its processors alone.
                    return [_stamp(inner) for inner in found]
    return []


def _stamp(file: Path) -> list[Any]:
    found = file.stat()
    return [str(file.resolve()), found.st_size, found.st_mtime_ns]


def _key(origin: str, around: list[Any], base: Point, point: Point, table: str | None) -> str:
    """A name for a point of this scenario and of the files that it reads, run by this very library."""
    names = [name for value in (*base.values(), *point.values()) for name in (value, *_texts(value))]
    named = [_state(name, Path(around[0])) for name in names]
    known = json.dumps([_library(), origin, around, named, base, point, *([table] if table else [])], sort_keys=True)
    return hashlib.sha256(known.encode()).hexdigest()[:16]


def _library() -> str:
    global _LIBRARY
    if _LIBRARY is None:
        _LIBRARY = hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()
    return _LIBRARY


_LIBRARY: str | None = None


#: What all points share: the scenario, its changes, and the table that is kept.
Common = tuple[str, Point, str | None]

#: Points that failed which a message names.
TOLD = 10

#: Points with their numbers.
Work = list[tuple[int, Point]]


def _point(common: Common, point: Point, progress: bool | Progress = False) -> pyarrow.Table | str:
    """The rows of a point, with its values in front, or why it failed. It runs in a worker, perhaps on another machine."""
    import pyarrow

    scenario, base, table = common
    report = _run(_asked(scenario, base | point, threads=1), None, progress)
    wrong = [f"{name}: {why}" for name, why in report.failures] + report.broken_laws
    if wrong:
        return "; ".join(wrong)
    values = {f"set.{key}": value for key, value in point.items()}
    if table is None:
        return pyarrow.Table.from_pylist([{**values, **_flat(design)} for design in report.designs])
    rows = report.tables[table].to_pyarrow()
    for place, (key, value) in enumerate(values.items()):
        rows = rows.add_column(place, key, [[value] * len(rows)])
    return rows


def _on_threads(_: str, common: Common, work: Work, workers: int) -> Iterator[tuple[int, pyarrow.Table | str]]:
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
    over = threading.Event()

    def look(_share: float, _label: str) -> None:
        # Signals come to the first thread alone; what raises here stops the run.
        if over.is_set():
            raise KeyboardInterrupt

    try:
        running = {pool.submit(_point, common, point, look): number for number, point in work}
        while running:
            done, _rest = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
    finally:
        over.set()
        pool.shutdown(wait=True, cancel_futures=True)


#: How often the point of a lost worker is run again.
RETRIES = 5

#: Points that wait at the cluster: each look at those that are finished takes time for each of them.
QUEUED = 1000


def _on_ray(on: str, common: Common, work: Work, workers: int) -> Iterator[tuple[int, pyarrow.Table | str]]:
    try:
        import ray
    except ImportError as error:
        raise ImportError("a sweep on Ray needs Ray: pip install ray") from error
    address = None if on == "ray" else on
    began = not ray.is_initialized()
    if began:
        # Workers have the priority of this program, as its threads do; Ray would lower it by 15.
        os.environ.setdefault("RAY_worker_niceness", "0")
        ray.init(address=address, num_cpus=(workers or None) if address is None else None, log_to_driver=False)
    try:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_point)
        shared = ray.put(common)
        most = workers if workers and address is not None else QUEUED
        waiting = deque(work)
        running: dict[ray.ObjectRef[Any], int] = {}
        while waiting or running:
            while waiting and len(running) < most:
                number, point = waiting.popleft()
                running[remote.remote(shared, point)] = number
            done, _rest = ray.wait(list(running), num_returns=1)
            for reference in done:
                yield running.pop(reference), ray.get(reference)
    finally:
        if began:
            ray.shutdown()


def _write(file: Path, rows: pyarrow.Table) -> None:
    """Writes the rows of a point, whole or not at all."""
    import pyarrow.parquet

    part = file.with_suffix(".part")
    pyarrow.parquet.write_table(rows, part, compression="zstd")
    part.replace(file)


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Numbers and texts of a design by their path; lists (components, rows of tables) are left to :attr:`Report.tables`."""
    flat: dict[str, Any] = {}
    for key, one in value.items():
        if isinstance(one, Mapping):
            flat.update(_flat(one, f"{prefix}{key}."))
        elif not isinstance(one, list):
            flat[prefix + key] = one
    return flat
