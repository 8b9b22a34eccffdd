"""Sweeps whose points are kept one by one, on the threads of this machine or on a Ray cluster."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._calls import ScenarioLike, _source, _value, run
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
        """Figures of all designs at all points, in the order of the points."""
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
        on: ``"threads"`` of this machine, ``"ray"`` for a Ray cluster on this machine, or the address of one
            (``"ray://head:10001"``, ``"auto"``). A worker that is lost is replaced, and its point run again. Results are the same, byte for byte.
        workers: points at once; all cores without it.
        progress: as of :func:`flashyard.run`.

    Raises:
        ScenarioError: a mistake at one of the points.
        ImportError: Ray is asked for and not installed, or pyarrow is missing.
        KeyboardInterrupt: Ctrl-C; what is finished is kept.
    """
    directory = Path(out)
    directory.mkdir(parents=True, exist_ok=True)
    path, text = _source(scenario)
    origin = text if text is not None else _text_of(path or "")
    base = {key: _value(value) for key, value in (set or {}).items()}
    points: list[Point] = [
        dict(zip(axes, map(_value, values), strict=True)) for values in itertools.product(*axes.values())
    ]
    files = [directory / f"{number:06}-{_key(origin, base, point)}.parquet" for number, point in enumerate(points)]
    missing = [number for number, file in enumerate(files) if not file.exists()]
    tell, end = chosen(progress)
    finished = len(points) - len(missing)
    try:
        for number, designs in _carried_out(on, path or origin, base, [(number, points[number]) for number in missing], workers):
            _write(files[number], points[number], designs)
            finished += 1
            if tell is not None:
                tell(finished / len(points), "points")
    finally:
        end()
    return Sweep(directory, files)


def _text_of(path: str) -> str:
    """The text of a scenario, as far as it is a file: what a point is known by."""
    return Path(path).read_text() if Path(path).is_file() else path


def _key(origin: str, base: Point, point: Point) -> str:
    """A name for a point of this scenario, run by this very library."""
    known = json.dumps([_library(), origin, base, point], sort_keys=True)
    return hashlib.sha256(known.encode()).hexdigest()[:16]


def _library() -> str:
    global _LIBRARY
    if _LIBRARY is None:
        _LIBRARY = hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()
    return _LIBRARY


_LIBRARY: str | None = None


def _point(scenario: str, changes: Point) -> str:
    """The designs of a point as JSON. It runs in a worker, perhaps on another machine."""
    return json.dumps(run(scenario, set=changes, threads=1, progress=False).designs)


Work = list[tuple[int, Point]]


def _carried_out(
    on: str, scenario: str, base: Point, work: Work, workers: int | None
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Points as they are finished."""
    carry_out: Callable[[str, str, Point, Work, int], Iterator[tuple[int, str]]] = (
        _on_threads if on == "threads" else _on_ray
    )
    count = workers if workers is not None else 0
    for number, designs in carry_out(on, scenario, base, work, count):
        yield number, json.loads(designs)


def _on_threads(_: str, scenario: str, base: Point, work: Work, workers: int) -> Iterator[tuple[int, str]]:
    pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
    try:
        running: dict[Future[str], int] = {
            pool.submit(_point, scenario, base | point): number for number, point in work
        }
        while running:
            done, _rest = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


#: How often the point of a lost worker is run again.
RETRIES = 5


def _on_ray(on: str, scenario: str, base: Point, work: Work, workers: int) -> Iterator[tuple[int, str]]:
    try:
        import ray
    except ImportError as error:
        raise ImportError("a sweep on Ray needs Ray: pip install ray") from error
    began = not ray.is_initialized()
    if began:
        address = None if on == "ray" else on
        ray.init(address=address, num_cpus=(workers or None) if address is None else None, log_to_driver=False)
    try:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_point)
        running = {remote.remote(scenario, base | point): number for number, point in work}
        while running:
            done, _rest = ray.wait(list(running), num_returns=1)
            for reference in done:
                yield running.pop(reference), ray.get(reference)
    finally:
        if began:
            ray.shutdown()


def _write(file: Path, point: Point, designs: list[dict[str, Any]]) -> None:
    """Writes the designs of a point, a row each, whole or not at all."""
    import pyarrow
    import pyarrow.parquet

    rows = [{**{f"set.{key}": value for key, value in point.items()}, **_flat(design)} for design in designs]
    table = pyarrow.Table.from_pylist(rows)
    part = file.with_suffix(".part")
    pyarrow.parquet.write_table(table, part, compression="zstd")
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
