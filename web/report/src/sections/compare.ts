// Throughput and latency of the designs as bars.

import { captioned } from "../chart.ts";
import { designBars } from "../charts/bars.ts";
import { element, section } from "../dom.ts";
import { throughputFinding } from "../findings.ts";
import { figure, runMetric, text } from "../metrics.ts";
import type { Page } from "../page.ts";

/** The figures that are drawn, where the runs have them. */
const DRAWN = ["throughput_bytes_per_s", "iops", "latency_us.mean", "latency_us.p50", "latency_us.p99", "latency_us.p999"];

export function compare(page: Page): HTMLElement | undefined {
  const metrics = DRAWN.flatMap((key) => runMetric(page.document, key) ?? []);
  if (metrics.length === 0) return undefined;
  const figures = metrics.map((metric) => captioned(metric.title, designBars(page, metric.title, (design) => figure(design.result, metric.key), (value) => text(metric, value))));
  return section("compare", "How much data, and how fast?", throughputFinding(page), element("div", { class: "grid three" }, figures));
}
