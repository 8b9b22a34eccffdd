"""What the studies share: tables between the marks of a page, and pictures that are the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def written(page: str, found: dict[str, str]) -> str:
    """The page with these tables between their marks."""
    for name, table in found.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end of {name} -->\n"
        before, rest = page.split(begin)
        page = before + begin + table + end + rest.split(end)[1]
    return page


def plots(name: str) -> Any:
    """pyplot, set up for pictures of that name."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif", "font.size": 9})
    from matplotlib import pyplot

    return pyplot


def save(figure: Any, file: Path) -> None:
    """Writes a figure, without the time at which it was made."""
    from matplotlib import pyplot

    figure.savefig(file, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
