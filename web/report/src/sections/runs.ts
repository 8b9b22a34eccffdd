// All runs of a sweep of which the page shows some one by one, where no explorer lists them.

import { element, folded, section, table } from "../dom.ts";
import { runNames } from "../explorer.ts";
import { listed } from "../format.ts";
import { figure, shownMetrics, text } from "../metrics.ts";
import { notShown } from "../page.ts";
import type { Page } from "../page.ts";

export function runs(page: Page): HTMLElement | undefined {
  if (notShown(page) === "" || page.explorer === null || page.explorer.is_a_choice) return undefined;
  const { document: { report }, designs } = page;
  const metrics = shownMetrics(page.document, null);
  const names = runNames(page.explorer);
  const rows = report.designs.map((design, place) => [names[place] ?? design.name, ...metrics.map((metric) => text(metric, figure(design, metric.key)))]);
  return section(
    "runs",
    "Which runs are shown?",
    notShown(page),
    element("p", { class: "quiet" }, `The sections below show ${listed(designs.map((design) => design.name))}. The table has all runs.`),
    folded(`All ${report.designs.length} runs as a table`, table("Every run of the sweep", ["Run", ...metrics.map((metric) => metric.title)], rows)),
  );
}
