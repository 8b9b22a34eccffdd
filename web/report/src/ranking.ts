// Which design is best in a figure, and which figures rank nobody. Pure functions, tested without a browser.

import { listed } from "./format.ts";
import { declares, figure } from "./metrics.ts";
import type { Design, Page } from "./page.ts";
import type { Figure, Metric, Needs } from "./schema.ts";
import { best } from "./shape.ts";

/** Whether one of the runs may be called the best: they serve the same load, and one seed is all there is. */
export const ranksRuns = ({ comparable, document }: Page): boolean => comparable && document.report.seeds === undefined;

/** Places of the best designs in a figure; none where it may not rank them, and where all are alike. */
export function ranked(page: Page, value: (design: Design) => Figure, better: "most" | "least", needs: Needs): number[] {
  if (!ranksRuns(page) || (needs === "equal_load" && loadDiffers(page))) return [];
  const own = needs === "work_in_drives" ? page.designs.map((design) => (design.result.computes_on_host ? null : value(design))) : page.designs.map(value);
  return best(own, better);
}

/** Requests that it takes until one is slower than a percentile. */
const LEAST_REQUESTS: Record<string, number> = { "latency_us.p99": 100, "latency_us.p999": 1_000, "latency_us.p9999": 10_000 };

/** Whether a design completed requests enough for a figure, as far as it counts them. */
export const isTold = ({ result }: Design, key: string): boolean => (figure(result, "ios") ?? Infinity) >= (LEAST_REQUESTS[key] ?? 0);

/** A figure of a design, where it completed requests enough for it. */
export const told = (design: Design, key: string): Figure => (isTold(design, key) ? figure(design.result, key) : null);

/** Places of the best designs in a declared figure. */
export const rankedBy = (page: Page, metric: Metric): number[] =>
  metric.better === "neither" ? [] : ranked(page, (design) => told(design, metric.key), metric.better === "more" ? "most" : "least", metric.needs);

/** Whether the designs of a closed loop served different loads: then percentiles of latency do not compare. */
export const loadDiffers = ({ document, designs }: Page): boolean =>
  document.report.closed_loop && best(designs.map((design) => design.result.iops), "most").length > 0;

/** Designs whose host does work that is in neither their energy nor their price. */
export const hosted = ({ designs }: Page): string[] => designs.filter((design) => design.result.computes_on_host).map((design) => design.name);

/** Why some figures rank nobody, a sentence each. */
export function reasons(page: Page): string[] {
  if (page.designs.length < 2) return [];
  const names = declares(page.document, "bom_dollars", "energy_joules_per_gb") ? hosted(page) : [];
  return [
    ...(loadDiffers(page) ? ["Percentiles of latency are not ranked: in a closed loop a slower design is asked for less, so fewer of its requests wait for flash. Compare them at equal load, with requests that arrive at a given rate."] : []),
    ...(names.length > 0 ? [`Energy and price are those of the drives. They do not rank ${listed(names)}, where host cores do part of the work: their energy and price are not known.`] : []),
  ];
}
