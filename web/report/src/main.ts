// The page: reads the document that stands in it and builds one section after the other.

import { drawCharts } from "./chart.ts";
import { element } from "./dom.ts";
import { page } from "./page.ts";
import { chartHeader, chartSection, chartWarnings } from "./chartpage/page.ts";
import type { ChartPage } from "./chartpage/schema.ts";
import { watchPrinting } from "./print.ts";
import type { ReportDocument } from "./schema.ts";
import { compare } from "./sections/compare.ts";
import { components } from "./sections/components.ts";
import { configuration } from "./sections/configuration.ts";
import { cost } from "./sections/cost.ts";
import { distribution } from "./sections/distribution.ts";
import { explorer } from "./sections/explorer.ts";
import { header, warnings } from "./sections/header.ts";
import { lending } from "./sections/lending.ts";
import { overtime } from "./sections/overtime.ts";
import { runs as allRuns } from "./sections/runs.ts";
import { seeds } from "./sections/seeds.ts";
import { split } from "./sections/split.ts";
import { summary } from "./sections/summary.ts";
import { utilization } from "./sections/utilization.ts";
import { wear } from "./sections/wear.ts";

const SECTIONS = [allRuns, summary, seeds, compare, distribution, split, components, utilization, overtime, lending, wear, cost, configuration];

/** What a page consists of, whichever document stands in it. */
interface Parts {
  title: string;
  head: HTMLElement[];
  sections: HTMLElement[];
}

function runs(document: ReportDocument): Parts {
  const shown = page(document);
  const sections = [...(shown.explorer?.is_a_choice ? [explorer(shown, shown.explorer)] : []), ...SECTIONS.flatMap((build) => build(shown) ?? [])];
  return { title: document.report.title || document.report.scenario, head: [header(shown), ...warnings(shown)], sections };
}

const charts = (document: ChartPage): Parts => ({
  title: document.title,
  head: [chartHeader(document), ...chartWarnings(document)],
  sections: document.sections.map(chartSection),
});

function show(): void {
  const text = document.getElementById("report-document")?.textContent ?? "";
  const found = JSON.parse(text) as ReportDocument | ChartPage;
  const { title, head, sections } = "report" in found ? runs(found) : charts(found);
  document.title = `${title} – Flashyard report`;
  const links = sections.map((one) => element("a", { href: `#${one.id}` }, one.querySelector("h2")?.textContent ?? ""));
  document.querySelector("main")?.replaceChildren(...head, element("nav", { "aria-label": "Sections" }, links), ...sections);
  drawCharts();
  watchPrinting();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawCharts(true));
  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    // Only a new width needs new charts; a phone's address bar changes the height.
    if (width === document.documentElement.clientWidth) return;
    width = document.documentElement.clientWidth;
    drawCharts(true);
  });
}

show();
