// The figures of each component, for kinds whose system says what to show of them.

import { element, section, table } from "../dom.ts";
import { componentsOf, figure, shownMetrics, text } from "../metrics.ts";
import type { Page } from "../page.ts";

/** Null where no kind has a table. */
export function components(page: Page): HTMLElement | null {
  const kinds = page.document.components.map((kind) => ({ kind, metrics: shownMetrics(page.document, kind.id) })).filter(({ metrics }) => metrics.length > 0);
  if (kinds.length === 0) return null;
  const tables = kinds.map(({ kind, metrics }) => {
    const rows = page.designs.flatMap((design) =>
      componentsOf(design.result, kind).map((one) => [`${design.name}, ${one.name}`, ...metrics.map((metric) => text(metric, figure(one, metric.key)))]),
    );
    const heads = metrics.map((metric) => metric.title);
    return table(`${kind.title}: figures of the measured window`, [`Design, ${kind.id}`, ...heads], rows);
  });
  const meanings = kinds.flatMap(({ metrics }) => metrics.map((metric) => element("div", {}, element("dt", {}, metric.title), element("dd", {}, metric.about))));
  return section("components", "What does each component do?", `Figures of each of the ${kinds.map(({ kind }) => kind.title.toLowerCase()).join(", ")}:`, ...tables, element("dl", { class: "about" }, meanings));
}
