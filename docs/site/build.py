"""Collects the pages of the site in target/site/pages: Markdown of the repository, and a page with every key of scenarios.

A link that leaves the pages, to a source file or a folder, becomes text: the site has no sources.
Usage: build.py SCHEMA.json, the output of `flashyard schema`.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "target" / "site" / "pages"

LINK = re.compile(r"(?<!!)\[((?:`[^`]*`|[^\]`])*)\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    """Pages of the site, from the root."""
    names = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "python/README.md")
    named = [ROOT / name for name in names]
    found = [*named, *ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md"), *ROOT.glob("scenarios/*/README.md"), *ROOT.glob("profiles/*/README.md")]
    return sorted(path.relative_to(ROOT) for path in found)


def linked(page: Path, text: str, known: set[Path]) -> str:
    """The text of a page whose links lead to pages and images alone."""

    def link(match: re.Match[str]) -> str:
        words, target = match.groups()
        if target.startswith(("http:", "https:", "#", "mailto:")):
            return match.group(0)
        path = (ROOT / page.parent / target.split("#")[0]).resolve()
        inside = path.is_relative_to(ROOT) and (path.relative_to(ROOT) in known or path.suffix in {".png", ".svg"})
        return match.group(0) if inside else words

    # A block of code is no text.
    parts = re.split(r"(```.*?```)", text, flags=re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def titles(schema: dict[str, Any]) -> dict[str, str]:
    """The heading of each section: the first place at which a scenario has it, such as `[drive.flash]`."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    found: dict[str, str] = {}
    waiting = [("", schema)]
    while waiting:
        place, section = waiting.pop(0)
        for key, value in section.get("properties", {}).items():
            for name in re.findall(r'"#/\$defs/(\w+)"', json.dumps(value)):
                if "properties" in definitions[name] and name not in found:
                    named = ".NAME" if "additionalProperties" in value else ""
                    found[name] = f"{place}.{key}{named}".lstrip(".")
                    waiting.append((found[name], definitions[name]))
    return found


def type_of(schema: dict[str, Any], definitions: dict[str, Any]) -> str:
    """The values that a key takes, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        found = definitions.get(name, {})
        return f"[section](#{name.lower()})" if "properties" in found else type_of(found, definitions)
    for several in ("oneOf", "anyOf"):
        if several in schema:
            names = [type_of(one, definitions) for one in schema[several] if one.get("type") != "null"]
            return ", ".join(dict.fromkeys(names))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    kinds = schema.get("type", "any value")
    kind = " or ".join(one for one in (kinds if isinstance(kinds, list) else [kinds]) if one != "null")
    if kind == "array":
        return f"list of {type_of(schema.get('items', {}), definitions)}"
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if low is None and high is None:
        return kind
    return f"{kind}, {'' if low is None else f'{low:g}'} to {'any' if high is None else f'{high:g}'}"


def plain(text: str) -> str:
    """Words of the schema without the links of its sources."""
    text = re.sub(r"\(?\[`(?:crate::)?([^`\]]*)`\]\)?", "", text)
    return text.replace("\\[", "[").replace("\\]", "]")


def rows(section: dict[str, Any], definitions: dict[str, Any]) -> list[str]:
    """A table of the keys of a section."""
    needed = section.get("required", [])
    lines = ["| key | values | meaning |", "|---|---|---|"]
    for key, schema in section.get("properties", {}).items():
        referred = definitions.get(schema.get("$ref", "").rsplit("/", 1)[-1], {})
        about = schema.get("description") or referred.get("description", "")
        about = plain(" ".join(about.split())).replace("|", "\\|")
        values = type_of(schema, definitions).replace("|", "\\|")
        lines.append(f"| `{key}`{' *' if key in needed else ''} | {values} | {about} |")
    return lines


def keys(schema: dict[str, Any]) -> str:
    """The page with every key."""
    definitions: dict[str, Any] = schema.get("$defs", {})
    text = [
        "# Keys of scenarios",
        "",
        "Written from `flashyard schema`, which a program can read. A star marks keys that a section needs; a profile gives all of its",
        "section. Numbers have their ranges. The source of each value stands in the profiles, and in the report of a run.",
        "",
        "## A scenario",
        "",
        *rows(schema, definitions),
    ]
    for name, title in titles(schema).items():
        section = definitions[name]
        about = " ".join(section.get("description", "").split())
        text += ["", f"## `[{title}]` {{ #{name.lower()} }}", "", plain(about), "", *rows(section, definitions)]
    return "\n".join(text) + "\n"


def main() -> None:
    schema = json.loads(Path(sys.argv[1]).read_text())
    shutil.rmtree(PAGES, ignore_errors=True)
    known = set(pages())
    for page in known:
        place = PAGES / page
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(linked(page, (ROOT / page).read_text(), known))
    shutil.copytree(ROOT / "docs" / "images", PAGES / "docs" / "images")
    shutil.copy(ROOT / "docs" / "site" / "console.css", PAGES)
    (PAGES / "keys.md").write_text(keys(schema))


main()
