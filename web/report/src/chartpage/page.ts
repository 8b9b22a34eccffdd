// A page of charts: head, sections, and in each of them panels to choose from.

import { captioned } from "../chart.ts";
import { switched } from "../choice.ts";
import { element, folded, section, table } from "../dom.ts";
import { bars } from "./bars.ts";
import { lines } from "./lines.ts";
import type { Chart, ChartPage, ChartPanel, ChartSection, ChartTable } from "./schema.ts";

export function chartHeader(page: ChartPage): HTMLElement {
  const facts: [string, string][] = [...page.facts, ["Program", `flashyard ${page.version}`]];
  return element(
    "header",
    {},
    element("p", { class: "kind" }, page.kind),
    element("h1", {}, page.title),
    element("dl", { class: "facts" }, facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
  );
}

export function chartWarnings(page: ChartPage): HTMLElement[] {
  if (page.complete) return [];
  return [element("aside", { class: "alert", role: "alert" }, element("h2", {}, "The run was interrupted"), element("p", {}, "Only what was finished is shown."))];
}

export function chartSection({ id, title, finding, choice, panels, tables }: ChartSection): HTMLElement {
  const whole = (panel: ChartPanel): HTMLElement => element("div", { class: panel.charts.length > 1 ? "grid two" : "" }, panel.charts.map(drawn));
  const shown = panels.length === 0 ? null : switched(
    [{ legend: choice, options: panels.map((panel) => panel.name), first: 0 }],
    ([chosen = 0]) => (panels[chosen] ? [whole(panels[chosen])] : []),
    () => panels.map((panel) => element("div", { class: "metric" }, panels.length > 1 ? element("h3", {}, panel.name) : null, whole(panel))),
  );
  return section(id, title, finding, shown, tables.length === 0 ? null : folded("The figures as a table", ...tables.map(figures)));
}

function drawn(chart: Chart): HTMLElement {
  const known = chart.series.some((series) => series.points.some(([, value]) => value !== null));
  if (!known) return captioned(chart.caption, element("p", { class: "quiet" }, "There is nothing to draw."));
  return captioned(chart.caption, chart.form === "bars" ? bars(chart) : lines(chart));
}

const figures = ({ caption, head, rows }: ChartTable): HTMLElement => table(caption, head, rows);
