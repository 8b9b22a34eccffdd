// The scenario with every default filled in, and where each number comes from.

import { element, section } from "../dom.ts";
import type { Page } from "../page.ts";

const MARKS: [string, string][] = [
  ["P", "published by the source"],
  ["C", "public artifact"],
  ["D", "derived, with the arithmetic"],
  ["A", "our assumption"],
  ["X", "public knowledge"],
];

export function configuration({ document: { resolved } }: Page): HTMLElement {
  const lines = resolved.split("\n").length;
  const legend = MARKS.map(([mark, meaning]) => element("li", {}, element("b", { class: `mark mark-${mark}` }, `[${mark}]`), ` ${meaning}`));
  return section(
    "configuration",
    "Which numbers went in?",
    "Every number of the scenario and its profiles states where it comes from:",
    element("ul", { class: "marks" }, legend),
    element("details", {}, element("summary", {}, `Resolved configuration, ${lines} lines of TOML`), element("pre", { tabindex: 0 }, element("code", {}, marked(resolved)))),
  );
}

/** The text with its provenance marks set apart. */
function marked(text: string): Node[] {
  return text.split(/(\[[PCDAX]\])/).map((part, index) => (index % 2 === 1 ? element("b", { class: `mark mark-${part[1]}` }, part) : document.createTextNode(part)));
}
