// Means over several seeds with their confidence intervals, and which differences are some.

import { element, scrolling, section } from "../dom.ts";
import { runMetric, text } from "../metrics.ts";
import type { Page } from "../page.ts";
import { seedsFindings, withInterval } from "../seeds.ts";

export function seeds(page: Page): HTMLElement | null {
  const found = page.document.report.seeds;
  if (!found) return null;
  const [first] = found.designs;
  const head = element("tr", {}, element("th", { scope: "col" }, "Figure"), found.designs.map((design) => element("th", { scope: "col" }, design.name)));
  const rows = (first?.figures ?? []).flatMap(({ key }, place) => {
    const metric = runMetric(page.document, key);
    if (!metric) return [];
    const cells = found.designs.map((design) => element("td", {}, withInterval(design.figures[place], (value) => text(metric, value))));
    return [element("tr", { "data-row": key }, element("th", { scope: "row", title: metric.about }, metric.title), cells)];
  });
  const caption = element("caption", {}, `Means over ${found.seeds.length} seeds, ± half of a 95 % confidence interval. All other figures of this page are of seed ${page.document.report.seed}.`);
  const table = element("table", { class: "summary" }, caption, element("thead", {}, head), element("tbody", {}, rows));
  const [finding = "", ...others] = seedsFindings(page.document, found);
  return section("seeds", "Is a difference one?", finding, scrolling("Means over seeds", table), ...others.map((line) => element("p", {}, line)));
}
