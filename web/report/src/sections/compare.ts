// Throughput and latency of the designs as bars.

import { captioned } from "../chart.ts";
import { designBars } from "../charts/bars.ts";
import { element, section } from "../dom.ts";
import { throughputFinding } from "../findings.ts";
import { bytesPerSecond, latency, perSecond } from "../format.ts";
import type { Page } from "../page.ts";

export function compare(page: Page): HTMLElement {
  const bars: [string, Parameters<typeof designBars>[2], Parameters<typeof designBars>[3]][] = [
    ["Throughput", (d) => d.result.throughput_bytes_per_s, bytesPerSecond],
    ["Requests", (d) => d.result.iops, perSecond],
    ["Latency, mean", (d) => d.result.latency_us.mean, latency],
    ["Latency, p50", (d) => d.result.latency_us.p50, latency],
    ["Latency, p99", (d) => d.result.latency_us.p99, latency],
    ["Latency, p99.9", (d) => d.result.latency_us.p999, latency],
  ];
  const figures = bars.map(([title, value, text]) => captioned(title, designBars(page, title, value, text)));
  return section("compare", "How much data, and how fast?", throughputFinding(page), element("div", { class: "grid three" }, figures));
}
