// The three charts of a drive's row: throughput, latency, and what is busy. Each is a frame, which is drawn when axes
// or colours change, and data, which is typed arrays: ECharts copies everything else with every drawing.

import { axis, tip, tooltip } from "../../report/src/chart.ts";
import type { Theme, TipLine } from "../../report/src/chart.ts";
import { RAMP } from "../../report/src/colours.ts";
import type { Hue } from "../../report/src/colours.ts";
import { bytesPerSecond, latency, mark, percent, seconds } from "../../report/src/format.ts";
import type { Figure } from "../../report/src/schema.ts";
import { EVENT, PERCENTILES, READ, WRITE } from "./colours.ts";
import type { LiveOption } from "./livechart.ts";
import { MINUTE, MOMENT } from "./past.ts";
import type { Past, Span } from "./past.ts";
import type { DrivePoints, DriveSnapshot, LiveEvent } from "./schema.ts";

/** Bins of the last minute: half a second each. Of the last moment they are the snapshots. */
const BINS = { minute: 120, moment: 20 };
const STRIPS = { minute: 60, moment: 20 };

/** What all rows share; it is changed in place, so that tooltips see what is shown now. */
export interface View {
  past: Past;
  window: "minute" | "moment";
  /** Ends of the axes. */
  bytesMost: number;
  latencyLeast: number;
  latencyMost: number;
}

export const lengthOf = (view: View): number => (view.window === "minute" ? MINUTE : MOMENT);

/** A series: fine steps where they are shown and exist, bins of the snapshots otherwise. */
function series(view: View, drive: number, figure: (drive: DriveSnapshot) => Figure, join: "mean" | "most", fine?: (points: DrivePoints) => readonly Figure[]): Span[] {
  const steps = view.window === "moment" && fine ? view.past.steps(drive, fine) : [];
  return steps.length > 0 ? steps : view.past.binned(drive, lengthOf(view), BINS[view.window], figure, join);
}

/** What a row marks: what a drive that comes or goes does to the others is the point, the rest concerns its drive. */
const eventsOf = (view: View, name: string): LiveEvent[] =>
  view.past.events.filter(({ kind, drive, time_seconds }) => {
    const concerns = drive === null || drive === name || kind === "lost" || kind === "back";
    return concerns && kind !== "connection" && time_seconds >= view.past.end - lengthOf(view);
  });

/** The window as it moves on. */
const moved = (view: View) => ({ min: view.past.end - lengthOf(view), max: view.past.end });

function frame(theme: Theme, view: View, text: (value: number) => string, y: { min: number; max: number; interval?: number; log?: boolean }) {
  const plain = axis(theme);
  return {
    grid: { left: 54, right: 6, top: 5, bottom: 5 },
    xAxis: { type: "value" as const, ...moved(view), axisLabel: { show: false }, axisTick: { show: false }, axisLine: plain.axisLine, splitLine: { show: false } },
    yAxis: {
      type: y.log ? ("log" as const) : ("value" as const),
      min: y.min,
      max: y.max,
      ...(y.interval !== undefined && { interval: y.interval }),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { ...plain.axisLabel, color: theme.muted, fontSize: 10, hideOverlap: true, formatter: (value: number) => mark(text(value)) },
      splitLine: plain.splitLine,
    },
  };
}

function hint(theme: Theme, view: View, name: string, title: string, lines: (time: number) => TipLine[]): NonNullable<LiveOption["tooltip"]> {
  return {
    ...tooltip(theme),
    trigger: "axis",
    confine: false,
    axisPointer: { type: "line", lineStyle: { color: theme.muted } },
    formatter: (hits) => {
      const [first] = Array.isArray(hits) ? hits : [hits];
      const at = Number((first?.value as number[] | undefined)?.[0]);
      const near = eventsOf(view, name).filter((event) => Math.abs(event.time_seconds - at) < lengthOf(view) / 80);
      const happened = near.map((event) => ({ name: event.text, value: ago(event.time_seconds - view.past.end) }));
      return tip(`${name}, ${title}, ${ago(at - view.past.end)}`, [...lines(at), ...happened]);
    },
  };
}

/** A time before now: `−3.2 s`. */
export const ago = (difference: number): string => (Math.abs(difference) < 0.005 ? "now" : `−${seconds(Number(Math.abs(difference).toFixed(2)))}`);

/** Lines where something happened. */
const marks = (theme: Theme, view: View, name: string) => ({
  silent: true,
  symbol: "none",
  animation: false,
  label: { show: false },
  data: eventsOf(view, name).map((event) => ({
    xAxis: event.time_seconds,
    lineStyle: { color: theme.hue(EVENT), width: event.kind === "lost" || event.kind === "back" ? 1.6 : 1, opacity: 0.75, type: event.kind === "lost" ? ("solid" as const) : ([3, 3] as [number, number]) },
  })),
});

/** ECharts takes a typed array as rows of numbers, as many as there are dimensions; its types do not say so. */
const packed = (values: Float64Array): number[][] => values as unknown as number[][];

/** Points in the middle of each span; what does not exist is not a number. */
function points(spans: readonly Span[]): number[][] {
  const made = new Float64Array(2 * spans.length);
  spans.forEach(({ from, to, value }, index) => made.set([(from + to) / 2, value ?? Number.NaN], 2 * index));
  return packed(made);
}

/** The value of the span in which a time lies. */
const valueAt = (spans: readonly Span[], time: number): Figure => spans.find(({ from, to }) => from <= time && time <= to)?.value ?? null;

/** Read and written of one drive. */
const flows = (view: View, drive: number): [string, Hue, Span[]][] => [
  ["read", READ, series(view, drive, (one) => one.read_bytes_per_s, "mean", (points) => points.read_bytes_per_s)],
  ["written", WRITE, series(view, drive, (one) => one.write_bytes_per_s, "mean", (points) => points.write_bytes_per_s)],
];

export function throughput(theme: Theme, view: View, drive: number, name: string, whole: boolean): LiveOption {
  const data = flows(view, drive).map(([title, hue, spans], index) => ({
    data: points(spans),
    ...(index === 0 && { markLine: marks(theme, view, name) }),
    ...(whole && {
      type: "line" as const,
      name: title,
      stack: "bytes",
      symbol: "none",
      dimensions: ["time", "value"],
      color: theme.hue(hue),
      step: view.window === "moment" ? ("middle" as const) : (false as const),
      lineStyle: { width: 0 },
      areaStyle: { opacity: 0.85 },
    }),
  }));
  if (!whole) return { xAxis: moved(view), series: data };
  return {
    ...frame(theme, view, bytesPerSecond, { min: 0, max: view.bytesMost, interval: view.bytesMost / 2 }),
    tooltip: hint(theme, view, name, "throughput", (time) => flows(view, drive).map(([title, hue, spans]) => ({ colour: theme.hue(hue), name: title, value: bytesPerSecond(valueAt(spans, time)) }))),
    series: data,
  };
}

/** A latency of a drive; none while it served nothing. */
const latencyOf = (one: DriveSnapshot, key: "p50" | "p99" | "p999" | "mean"): Figure => ((one.iops ?? 0) > 0 ? one.latency_us[key] : null);

/** Percentiles of one drive, and in front of them the means of the fine steps where they are shown. */
function curves(view: View, drive: number): { title: string; hue: Hue; dash: "solid" | readonly number[]; spans: Span[] }[] {
  const fine = view.window === "moment" ? view.past.steps(drive, (points) => points.latency_mean_us) : [];
  return [
    { title: "mean", hue: EVENT, dash: "solid", spans: fine },
    ...PERCENTILES.map(({ name, key, hue, dash }) => ({ title: name, hue, dash, spans: series(view, drive, (one) => latencyOf(one, key), key === "p50" ? "mean" : "most") })),
  ];
}

export function latencies(theme: Theme, view: View, drive: number, name: string, whole: boolean): LiveOption {
  const data = curves(view, drive).map(({ title, hue, dash, spans }, index) => ({
    data: points(spans),
    ...(index === 0 && { markLine: marks(theme, view, name) }),
    ...(whole && {
      type: "line" as const,
      name: title,
      symbol: "none",
      dimensions: ["time", "value"],
      color: theme.hue(hue),
      lineStyle: { width: title === "mean" ? 1 : 1.5, type: typeof dash === "string" ? dash : [...dash] },
    }),
  }));
  if (!whole) return { xAxis: moved(view), series: data };
  const lines = (time: number): TipLine[] =>
    curves(view, drive).filter(({ spans }) => spans.length > 0).map(({ title, hue, spans }) => ({ colour: theme.hue(hue), name: title, value: latency(valueAt(spans, time)) }));
  return {
    ...frame(theme, view, latency, { min: view.latencyLeast, max: view.latencyMost, log: true }),
    tooltip: hint(theme, view, name, "latency", lines),
    series: data,
  };
}

/** What a drive has that may be busy. */
const PARTS: { name: string; figure: (drive: DriveSnapshot) => Figure; fine?: (points: DrivePoints) => readonly Figure[] }[] = [
  { name: "cores", figure: (drive) => drive.processor_utilization, fine: (points) => points.processor_utilization },
  { name: "dies", figure: (drive) => drive.die_utilization },
  { name: "bus", figure: (drive) => drive.bus_utilization },
  { name: "DRAM", figure: (drive) => drive.dram_utilization },
];

/** What the strips show: equal bins, or fine steps, for which coarser figures are repeated. */
function stripSpans(view: View, drive: number): Span[][] {
  const coarse = PARTS.map((part) => view.past.binned(drive, lengthOf(view), STRIPS[view.window], part.figure, "mean"));
  if (view.window === "minute") return coarse;
  const fine = PARTS.map((part) => (part.fine ? view.past.steps(drive, part.fine) : []));
  const columns = fine.find((spans) => spans.length > 0)?.filter(({ to }) => to > view.past.end - MOMENT) ?? [];
  if (columns.length === 0) return coarse;
  return PARTS.map((_, row) => {
    const steps = fine[row] ?? [];
    if (steps.length > 0) return steps.slice(-columns.length);
    return columns.map(({ from, to }) => ({ from, to, value: coarse[row]?.find((span) => span.from < to && to <= span.to + 1e-9)?.value ?? null }));
  });
}

/** Column, row and value of each cell that has one. */
function cells(rows: readonly Span[][]): number[][] {
  return packed(Float64Array.from(rows.flatMap((spans, row) => spans.flatMap(({ value }, column) => (value === null ? [] : [column, row, value])))));
}

export function strips(theme: Theme, view: View, drive: number, name: string, whole: boolean): LiveOption {
  const rows = stripSpans(view, drive);
  const latest = view.past.latest?.drives[drive];
  const columns = { data: rows[0]?.map((_, column) => String(column)) ?? [] };
  const now = { data: PARTS.map((part) => (latest ? percent(part.figure(latest)) : "")) };
  if (!whole) return { xAxis: columns, yAxis: [{}, now], series: [{ data: cells(rows) }] };
  const label = { color: theme.ink, fontSize: 10.5, interval: 0, margin: 5 };
  const bare = { axisLine: { show: false }, axisTick: { show: false }, splitLine: { show: false } };
  return {
    grid: { left: 42, right: 50, top: 3, bottom: 3 },
    xAxis: { type: "category", ...columns, ...bare, axisLabel: { show: false } },
    yAxis: [
      // Its lines lie over the cells and keep the strips apart.
      { type: "category", inverse: true, data: PARTS.map((part) => part.name), ...bare, z: 9, splitLine: { show: true, lineStyle: { color: theme.surface, width: 4 } }, axisLabel: { ...label, color: theme.muted } },
      { type: "category", inverse: true, position: "right", ...now, ...bare, axisLabel: label },
    ],
    tooltip: {
      ...tooltip(theme),
      confine: false,
      formatter: (hit) => {
        const [column] = (Array.isArray(hit) ? [] : hit.value) as [number?];
        const shown = stripSpans(view, drive);
        const span = shown[0]?.[column ?? 0];
        if (!span) return "";
        return tip(`${name}, ${ago(span.from - view.past.end)}`, PARTS.map((part, row) => ({ name: part.name, value: percent(shown[row]?.[column ?? 0]?.value ?? null) })));
      },
    },
    visualMap: { show: false, type: "continuous", min: 0, max: 1, dimension: 2, seriesIndex: 0, inRange: { color: theme.dark ? RAMP.dark : RAMP.light } },
    series: [
      { type: "heatmap", progressive: 0, dimensions: ["column", "row", "value"], data: cells(rows) },
      // The axis on the right needs a series of its own.
      { type: "heatmap", yAxisIndex: 1, silent: true, data: [] },
    ],
  };
}
