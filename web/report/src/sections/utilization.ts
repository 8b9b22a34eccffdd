// How busy each drive is over time.

import { captioned } from "../chart.ts";
import { heatMap } from "../charts/heat.ts";
import type { HeatMetric } from "../charts/heat.ts";
import { switched } from "../choice.ts";
import { element, section } from "../dom.ts";
import { utilizationFinding } from "../findings.ts";
import type { Page } from "../page.ts";

const METRICS: HeatMetric[] = [
  { name: "Cores busy", series: (drive) => drive.processor_utilization, none: "unknown" },
  { name: "Cores lent to others", series: (drive) => drive.lent_utilization, none: "unknown" },
  { name: "Commands sent to lenders", series: (drive) => drive.redirected_share, none: "unknown" },
  { name: "Buses busy", series: (drive) => drive.bus_utilization, none: "unknown" },
  { name: "Dies busy", series: (drive) => drive.die_utilization, none: "unknown" },
  { name: "Mapping misses", series: (drive) => drive.mapping_miss_ratio, none: "no mapping access" },
];

export function utilization(page: Page): HTMLElement {
  const title = "How busy is each drive over time?";
  const designs = page.designs.filter((design) => design.detail.timeline.begin_seconds.length > 0 && design.detail.timeline.drives.length > 0);
  if (designs.length === 0) return section("utilization", title, "No interval was recorded.");
  const show = ([metric = 0, design = 0]: number[]): Node[] => {
    const [shown, one] = [METRICS[metric], designs[design]];
    return shown && one ? [captioned(`${shown.name}, ${one.name}`, heatMap(one, shown, false))] : [];
  };
  const all = (): Node[] => [
    element("p", { class: "ramp" }, "0 %", element("span", {}), "100 %; no cell: no value"),
    ...METRICS.map((metric) =>
      element("div", { class: "metric" }, element("h3", {}, metric.name), element("div", { class: "grid small" }, designs.map((design) => captioned(design.name, heatMap(design, metric, true))))),
    ),
  ];
  return section(
    "utilization",
    title,
    utilizationFinding(page),
    switched(
      [
        { legend: "Show", options: METRICS.map((metric) => metric.name), first: 0 },
        { legend: "Design", options: designs.map((design) => design.name), first: designs.length - 1 },
      ],
      show,
      all,
    ),
  );
}
