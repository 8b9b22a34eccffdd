// Which sections a system has figures for. Pure functions, tested without a browser.

import { declares } from "./metrics.ts";
import type { ReportDocument } from "./schema.ts";

const PERCENTILES = ["latency_us.p50", "latency_us.p99", "latency_us.p999", "latency_us.p9999"];
const MOVED = ["read_bytes_per_s", "write_bytes_per_s"];

/** Whether it reports how latency is distributed. */
export const reportsWaits = (document: ReportDocument): boolean => declares(document, ...PERCENTILES);

/** Whether it tells where the time of a request goes. */
export const reportsSplit = (document: ReportDocument): boolean => document.causes.length > 0;

/** Whether it reports what writes cost the flash. */
export const reportsWear = (document: ReportDocument): boolean => declares(document, "write_amplification");

/** Whether it records over time how much data drives move. */
export const reportsCourse = ({ metrics }: ReportDocument): boolean => metrics.some(({ key, component, series }) => series && component === "drive" && MOVED.includes(key));
