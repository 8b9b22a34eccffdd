"""Pages whose Python is run: the blocks of the language ``pycon``, compared with the output that stands below each line.

``…`` in an output stands for any text. All blocks of a page share their names.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", ["docs/tutorials/python.md"])
def test_a_page_prints_what_it_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    # What is no block becomes empty lines, so that a difference has the line of the page.
    kept, end = "", 0
    for block in BLOCK.finditer(text):
        kept += "\n" * text.count("\n", end, block.start(1)) + block[1].replace("…", "...")
        end = block.end(1)
    test = doctest.DocTestParser().get_doctest(kept, {}, page, str(ROOT / page), 0)
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(said)
