// The figures of all designs side by side, the best marked.

import { element, scrolling, section } from "../dom.ts";
import { summaryFinding } from "../findings.ts";
import { figure, shownMetrics, text } from "../metrics.ts";
import type { Page } from "../page.ts";
import { rankedBy, ranksRuns, reasons } from "../ranking.ts";
import type { Metric } from "../schema.ts";

export function summary(page: Page): HTMLElement {
  const { designs } = page;
  const row = (metric: Metric): HTMLElement => {
    const values = designs.map((design) => figure(design.result, metric.key));
    const marked = rankedBy(page, metric);
    const cells = values.map((one, index) =>
      marked.includes(index)
        ? element("td", { class: "best" }, element("span", { class: "star", title: "best" }, "★\u00a0"), text(metric, one))
        : element("td", {}, text(metric, one)),
    );
    return element("tr", { "data-row": metric.key }, element("th", { scope: "row", title: metric.about }, metric.title), cells);
  };
  const head = element("tr", {}, element("th", { scope: "col" }, "Figure"), designs.map((design) =>
    element("th", { scope: "col" }, element("span", { class: "swatch", style: `--light:${design.hue.light};--dark:${design.hue.dark}` }), design.name)));
  const table = element("table", { class: "summary" }, element("caption", {}, designs.length > 1 && ranksRuns(page) ? "Figures of the measured window. ★ marks the best, where one end of the scale is better and the designs compare." : "Figures of the measured window."), element("thead", {}, head), element("tbody", {}, shownMetrics(page.document, null).map(row)));
  return section("summary", "Which design serves best?", summaryFinding(page), designs.length > 0 ? scrolling("Figures of all designs", table) : null, ...reasons(page).map((reason) => element("p", { class: "quiet" }, reason)));
}
