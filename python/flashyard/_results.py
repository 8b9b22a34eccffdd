"""Results of runs, studies and lives."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any

from ._table import Tables


class Report:
    """Result of a run."""

    def __init__(self, native: Any) -> None:
        self._native = native
        self._content: dict[str, Any] | None = None

    @property
    def content(self) -> dict[str, Any]:
        """The report as ``flashyard run --json`` prints it (docs/results.md)."""
        if self._content is None:
            self._content = json.loads(self._native.json())
        return self._content

    @property
    def designs(self) -> list[dict[str, Any]]:
        """The figures of each design, in the order asked for."""
        designs: list[dict[str, Any]] = self.content["designs"]
        return designs

    def design(self, name: str) -> dict[str, Any]:
        """The figures of the design, or of the run of a sweep, with this name.

        Raises:
            KeyError: there is none.
        """
        for design in self.designs:
            if design["name"] == name:
                return design
        raise KeyError(f"{name}; there are {', '.join(design['name'] for design in self.designs)}")

    @property
    def tables(self) -> Tables:
        """Distributions and series as tables: ``report.tables["drives"]``."""
        return Tables(self._native)

    @property
    def scenario(self) -> str:
        """The scenario with its profiles and changes, as TOML that runs again."""
        return str(self._native.resolved)

    @property
    def failures(self) -> list[tuple[str, str]]:
        """Runs that failed, and why; the others are in the report."""
        return list(self._native.failures)

    @property
    def broken_laws(self) -> list[str]:
        """Runs whose figures cannot be trusted, and why: a mistake of the program."""
        return list(self._native.broken_laws)

    @property
    def wrong(self) -> list[str]:
        """A line for each run that failed or whose figures cannot be trusted."""
        return [f"{name} has failed: {why}" for name, why in self.failures] + self.broken_laws

    def json(self) -> str:
        """The text of ``report.json``."""
        return str(self._native.json())

    def html(self) -> str:
        """The page ``report.html``, which needs nothing beside it."""
        return str(self._native.html())

    def write(self, directory: str | os.PathLike[str]) -> None:
        """Writes the files of ``--out``: page, figures, tables as Parquet, and the scenario.

        Raises:
            OSError: a file cannot be written, or was read by the run.
        """
        self._native.write(os.fspath(directory))

    def __str__(self) -> str:
        text = str(self._native.text(shutil.get_terminal_size((100, 24)).columns))
        return "\n".join([text, *self.wrong])

    def __repr__(self) -> str:
        return f"Report({self.content['scenario']}: {', '.join(design['name'] for design in self.designs)})"


class Study:
    """Published numbers beside ours."""

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def comparisons(self) -> list[dict[str, Any]]:
        """One entry a number, as ``flashyard reproduce --json`` prints them."""
        comparisons: list[dict[str, Any]] = json.loads(self._native.json())
        return comparisons

    @property
    def records(self) -> dict[str, Any]:
        """The figures of each run by its name."""
        return {name: json.loads(text) for name, text in self._native.records()}

    def json(self) -> str:
        """The text of ``comparison.json``."""
        return str(self._native.json())

    def html(self) -> str:
        """The page with charts."""
        return str(self._native.html())

    def __str__(self) -> str:
        return str(self._native.text())

    def __repr__(self) -> str:
        return f"Study({len(self.comparisons)} numbers)"


class Life:
    """The life of a drive."""

    def __init__(self, native: Any) -> None:
        self._native = native

    @property
    def record(self) -> dict[str, Any]:
        """The record of the life, as ``flashyard age --json`` prints it."""
        record: dict[str, Any] = json.loads(self._native.json())
        return record

    @property
    def tables(self) -> Tables:
        """``life``, a row for each moment, and ``erase_counts``."""
        return Tables(self._native)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the aged drive, for the key ``drive.aged_state`` of a scenario.

        Raises:
            OSError: the file cannot be written.
        """
        self._native.save(os.fspath(path))

    def __str__(self) -> str:
        return str(self._native.text())


class Fit:
    """The profile of a drive that was measured."""

    def __init__(self, text: str, settings: list[tuple[str, str]]) -> None:
        self._content: dict[str, Any] = json.loads(text)
        self._settings = settings

    @property
    def figures(self) -> list[dict[str, Any]]:
        """Loads with their unit, bytes of a request, depth, and the values that were measured and fitted."""
        figures: list[dict[str, Any]] = self._content["figures"]
        return figures

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """Keys with their values, the load that each was fitted to, and the verdict of the figures: determined, open, or like another."""
        parameters: list[dict[str, Any]] = self._content["parameters"]
        return parameters

    @property
    def settings(self) -> dict[str, Any]:
        """The drive, as a section of its own, and keys of the host for ``run(..., set=fit.settings)``; what the figures leave open
        keeps its default."""
        drive = {key.removeprefix("drive."): _typed(value) for key, value in self._settings if key.startswith("drive.")}
        return {"drive": drive, **{key: value for key, value in self._settings if not key.startswith("drive.")}}

    @property
    def worst(self) -> float:
        """The largest miss of all figures, as a share: 0.1 is ten percent."""
        return max((abs(one["fitted"] / one["measured"] - 1.0) for one in self.figures), default=0.0)

    def __str__(self) -> str:
        rows = (f"{one['load']}: {one['measured']:g} measured, {one['fitted']:g} fitted, {one['unit']}" for one in self.figures)
        return "\n".join(rows)


def _typed(text: str) -> Any:
    """A value of a profile: a number, a switch or a text, quoted or not."""
    try:
        return json.loads(text)
    except ValueError:
        return text
