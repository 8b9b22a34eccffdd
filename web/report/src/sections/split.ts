// Where the time of requests goes.

import { captioned } from "../chart.ts";
import { splitBars } from "../charts/split.ts";
import { causeHue } from "../colours.ts";
import { element, folded, section, table } from "../dom.ts";
import { splitFinding } from "../findings.ts";
import { count, digits, latency } from "../format.ts";
import type { Page } from "../page.ts";
import { reportsSplit } from "../reported.ts";

const TITLES: Record<string, string> = { mean: "The mean request", "near p50": "Mean of the requests near p50", "near p99": "Mean of the requests near p99", "near p99.9": "Mean of the requests near p99.9" };

export function split(page: Page): HTMLElement | undefined {
  if (!reportsSplit(page.document)) return undefined;
  const { designs, causes } = page;
  const title = "Why is it slow?";
  const ats = [...new Set(designs.flatMap((design) => design.result.latency_split.map((row) => row.at)))];
  if (ats.length === 0) return section("split", title, splitFinding(page));
  const rowsAt = (at: string) => designs.map((design) => design.result.latency_split.find((row) => row.at === at));
  const figures = ats.map((at) => {
    const name = TITLES[at] ?? `Requests at ${at}`;
    return captioned(name, splitBars(page, name, rowsAt(at)));
  });
  const legend = causes.map((cause, index) => {
    const { light, dark } = causeHue(index);
    return element("div", { title: cause.note }, element("dt", {}, element("span", { class: "swatch", style: `--light:${light};--dark:${dark}` }), cause.label), element("dd", {}, cause.note));
  });
  const rows = ats.flatMap((at) =>
    rowsAt(at).flatMap((row, index) =>
      row ? [[`${designs[index]?.name ?? ""}, ${at}`, count(row.requests), latency(row.latency_us), ...row.parts_us.map((us) => (us === null ? "–" : digits(us)))]] : [],
    ),
  );
  return section(
    "split",
    title,
    splitFinding(page),
    element("div", { class: "grid two" }, figures),
    element("dl", { class: "causes" }, legend),
    folded("Time by cause as a table", table("Time of a request by cause, in microseconds", ["Design, at", "Requests", "Their mean latency", ...causes.map((cause) => cause.label)], rows)),
  );
}
