"""Progress of work that takes time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol, TypeAlias

#: Called with the share that is done, 0 to 1, and a word for the work.
Progress: TypeAlias = Callable[[float, str], object]


class _Bar(Protocol):
    n: float

    def refresh(self) -> object: ...

    def close(self) -> object: ...


class Bar:
    """A bar of tqdm, which shows in notebooks too; nothing where tqdm is not installed."""

    def __init__(self) -> None:
        self._bar: _Bar | None = None

    def __call__(self, share: float, label: str) -> None:
        if self._bar is None:
            self._bar = _tqdm(label)
        if self._bar is not None:
            self._bar.n = round(share * 100)
            self._bar.refresh()

    def close(self) -> None:
        """Ends the bar."""
        if self._bar is not None:
            self._bar.close()


def _tqdm(label: str) -> _Bar | None:
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar: _Bar = tqdm(total=100, desc=label, unit="%", leave=False, file=sys.stderr)
    return bar


def chosen(progress: bool | Progress) -> tuple[Progress | None, Callable[[], None]]:
    """The callback of a choice, and what ends it."""
    if progress is True:
        bar = Bar()
        return bar, bar.close
    return progress or None, lambda: None
