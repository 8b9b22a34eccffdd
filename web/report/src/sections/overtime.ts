// Throughput and latency over simulated time.

import { captioned } from "../chart.ts";
import { timeLines } from "../charts/lines.ts";
import { section } from "../dom.ts";
import { steadinessFinding } from "../findings.ts";
import { bytesPerSecond, latency } from "../format.ts";
import type { Page } from "../page.ts";
import { reportsCourse } from "../reported.ts";
import { latencyOverTime, totals } from "../shape.ts";

export function overtime(page: Page): HTMLElement | undefined {
  if (!reportsCourse(page.document)) return undefined;
  const title = "How steady is it?";
  const timelines = page.designs.map((design) => design.detail.timeline);
  if (timelines.every((timeline) => timeline.begin_seconds.length === 0)) return section("overtime", title, "No interval was recorded.");
  const throughput = timelines.map((timeline) => {
    const [read, written] = [totals(timeline, (drive) => drive.read_bytes_per_s), totals(timeline, (drive) => drive.write_bytes_per_s)];
    return read.map(([time, value], index): [number, number | null] => [time, value === null ? (written[index]?.[1] ?? null) : value + (written[index]?.[1] ?? 0)]);
  });
  return section(
    "overtime",
    title,
    steadinessFinding(page),
    captioned("Throughput of all drives", timeLines(page, "Throughput", throughput, bytesPerSecond)),
    captioned("Mean latency of the requests completed in each interval", timeLines(page, "Mean latency", timelines.map(latencyOverTime), latency)),
  );
}
