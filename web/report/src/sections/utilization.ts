// How busy each drive is over time.

import { captioned } from "../chart.ts";
import { heatMap } from "../charts/heat.ts";
import { switched } from "../choice.ts";
import { element, section } from "../dom.ts";
import { utilizationFinding } from "../findings.ts";
import { shareSeries } from "../metrics.ts";
import type { Page } from "../page.ts";

export function utilization(page: Page): HTMLElement | undefined {
  const title = "How busy is each drive over time?";
  const series = shareSeries(page.document);
  if (series.length === 0) return undefined;
  const designs = page.designs.filter(({ detail: { timeline } }) => timeline.begin_seconds.length > 0 && series.some((one) => one.rows(timeline).length > 0));
  if (designs.length === 0) return section("utilization", title, "No interval was recorded.");
  const show = ([metric = 0, design = 0]: number[]): Node[] => {
    const [shown, one] = [series[metric], designs[design]];
    return shown && one ? [captioned(`${shown.name}, ${one.name}`, heatMap(one, shown, false))] : [];
  };
  const all = (): Node[] => [
    element("p", { class: "ramp" }, "0 %", element("span", {}), "100 %; no cell: no value"),
    ...series.map((metric) =>
      element("div", { class: "metric" }, element("h3", {}, metric.name), element("div", { class: "grid small" }, designs.map((design) => captioned(design.name, heatMap(design, metric, true))))),
    ),
  ];
  return section(
    "utilization",
    title,
    utilizationFinding(page),
    switched(
      [
        { legend: "Show", options: series.map((metric) => metric.name), first: 0 },
        { legend: "Design", options: designs.map((design) => design.name), first: designs.length - 1 },
      ],
      show,
      all,
    ),
  );
}
