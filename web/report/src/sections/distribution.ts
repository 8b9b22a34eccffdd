// How latency is distributed, to the far tail.

import { captioned } from "../chart.ts";
import { latencyHistogram } from "../charts/histogram.ts";
import { percentileCurves } from "../charts/percentiles.ts";
import { element, folded, section, table } from "../dom.ts";
import { tailFinding } from "../findings.ts";
import { latency } from "../format.ts";
import type { Page } from "../page.ts";
import { reportsWaits } from "../reported.ts";

export function distribution(page: Page): HTMLElement | undefined {
  if (!reportsWaits(page.document)) return undefined;
  const { designs } = page;
  const title = "How long do the slowest requests take?";
  const curves = designs.some((design) => design.detail.percentiles.length > 0);
  const buckets = designs.some((design) => design.detail.latency.some((bucket) => bucket.requests > 0));
  if (!curves && !buckets) return section("distribution", title, tailFinding(page));
  const percents = [...new Set(designs.flatMap((design) => design.detail.percentiles.map((point) => point.percent)))].sort((a, b) => a - b);
  const rows = percents.map((percent) => [
    `p${percent}`,
    ...designs.map((design) => latency(design.detail.percentiles.find((point) => point.percent === percent)?.latency_us ?? null)),
  ]);
  return section(
    "distribution",
    title,
    tailFinding(page),
    element(
      "div",
      { class: "grid two" },
      curves ? captioned("Latency that a share of the requests does not exceed", percentileCurves(page)) : null,
      buckets ? captioned("Share of requests by latency, ten steps a decade", latencyHistogram(page)) : null,
    ),
    curves ? folded("Latency at each percentile as a table", table("Latency that a share of the requests does not exceed", ["Percentile", ...designs.map((design) => design.name)], rows)) : null,
  );
}
