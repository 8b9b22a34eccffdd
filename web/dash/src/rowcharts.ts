// The three charts of a drive's row: throughput, latency, and what is busy.

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

/** What all rows share. */
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

const eventsOf = (view: View, name: string): LiveEvent[] =>
  view.past.events.filter((event) => (event.drive === null || event.drive === name) && event.kind !== "connection" && event.time_seconds >= view.past.end - lengthOf(view));

function frame(theme: Theme, view: View, left: number, text: (value: number) => string, y: { min: number; max: number; interval?: number; log?: boolean }): LiveOption {
  const plain = axis(theme);
  return {
    grid: { left, right: 6, top: 5, bottom: 5 },
    xAxis: { type: "value", min: view.past.end - lengthOf(view), max: view.past.end, axisLabel: { show: false }, axisTick: { show: false }, axisLine: plain.axisLine, splitLine: { show: false } },
    yAxis: {
      type: y.log ? "log" : "value",
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

function hint(theme: Theme, view: View, name: string, title: string, lines: (at: number) => TipLine[]): NonNullable<LiveOption["tooltip"]> {
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
      return tip(`${name}, ${title}, ${ago(at - view.past.end)}`, [...lines(first?.dataIndex ?? 0), ...happened]);
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

const middle = ({ from, to, value }: Span): [number, number | string] => [(from + to) / 2, value ?? "-"];

export function throughput(theme: Theme, view: View, drive: number, name: string): LiveOption {
  const read = series(view, drive, (one) => one.read_bytes_per_s, "mean", (points) => points.read_bytes_per_s);
  const write = series(view, drive, (one) => one.write_bytes_per_s, "mean", (points) => points.write_bytes_per_s);
  const area = (title: string, hue: Hue, spans: Span[]) => ({
    type: "line" as const,
    name: title,
    stack: "bytes",
    symbol: "none",
    color: theme.hue(hue),
    step: view.window === "moment" ? ("middle" as const) : (false as const),
    lineStyle: { width: 0 },
    areaStyle: { opacity: 0.85 },
    data: spans.map(middle),
  });
  return {
    ...frame(theme, view, 54, bytesPerSecond, { min: 0, max: view.bytesMost, interval: view.bytesMost / 2 }),
    tooltip: hint(theme, view, name, "throughput", (at) => [
      { colour: theme.hue(READ), name: "read", value: bytesPerSecond(read[at]?.value ?? null) },
      { colour: theme.hue(WRITE), name: "written", value: bytesPerSecond(write[at]?.value ?? null) },
    ]),
    series: [{ ...area("read", READ, read), markLine: marks(theme, view, name) }, area("written", WRITE, write)],
  };
}

/** A latency of a drive; none while it served nothing. */
const latencyOf = (one: DriveSnapshot, key: "p50" | "p99" | "p999" | "mean"): Figure => ((one.iops ?? 0) > 0 ? one.latency_us[key] : null);

export function latencies(theme: Theme, view: View, drive: number, name: string): LiveOption {
  const fine = view.window === "moment" ? view.past.steps(drive, (points) => points.latency_mean_us) : [];
  const lines = [
    ...PERCENTILES.map(({ name: title, key, hue, dash }) => ({ title, hue, dash, spans: series(view, drive, (one) => latencyOf(one, key), key === "p50" ? "mean" : "most") })),
    ...(fine.length > 0 ? [{ title: "mean", hue: EVENT, dash: "solid" as const, spans: fine }] : []),
  ];
  // The finest series leads the tooltip.
  const leading = lines.at(-1)?.spans ?? [];
  const valueAt = (spans: Span[], at: number): Figure => {
    const span = leading[at];
    const time = span ? (span.from + span.to) / 2 : 0;
    return spans.find(({ from, to }) => from <= time && time <= to)?.value ?? null;
  };
  const drawn = [...lines].reverse();
  return {
    ...frame(theme, view, 54, latency, { min: view.latencyLeast, max: view.latencyMost, log: true }),
    tooltip: hint(theme, view, name, "latency", (at) => lines.map(({ title, hue, spans }) => ({ colour: theme.hue(hue), name: title, value: latency(valueAt(spans, at)) }))),
    series: [0, 1, 2, 3].map((place) => {
      const line = drawn[place - (4 - drawn.length)];
      return {
        type: "line" as const,
        name: line?.title ?? "",
        symbol: "none",
        color: theme.hue(line?.hue ?? EVENT),
        lineStyle: { width: line?.title === "mean" ? 1 : 1.5, type: line ? (typeof line.dash === "string" ? line.dash : [...line.dash]) : ("solid" as const) },
        data: (line?.spans ?? []).map(middle),
        ...(place === 3 && { markLine: marks(theme, view, name) }),
      };
    }),
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

export function strips(theme: Theme, view: View, drive: number, name: string): LiveOption {
  const rows = stripSpans(view, drive);
  const latest = view.past.latest?.drives[drive];
  const label = { color: theme.ink, fontSize: 10.5, interval: 0, margin: 5 };
  const bare = { axisLine: { show: false }, axisTick: { show: false }, splitLine: { show: false } };
  return {
    grid: { left: 42, right: 50, top: 3, bottom: 3 },
    xAxis: { type: "category", data: rows[0]?.map(({ from }) => String(from)) ?? [], ...bare, axisLabel: { show: false } },
    yAxis: [
      // Its lines lie over the cells and keep the strips apart.
      { type: "category", inverse: true, data: PARTS.map((part) => part.name), ...bare, z: 9, splitLine: { show: true, lineStyle: { color: theme.surface, width: 4 } }, axisLabel: { ...label, color: theme.muted } },
      { type: "category", inverse: true, position: "right", data: PARTS.map((part) => (latest ? percent(part.figure(latest)) : "")), ...bare, axisLabel: label },
    ],
    tooltip: {
      ...tooltip(theme),
      confine: false,
      formatter: (hit) => {
        const [column, row] = (Array.isArray(hit) ? [] : hit.value) as [number?, number?];
        const span = rows[row ?? 0]?.[column ?? 0];
        if (!span) return "";
        return tip(`${name}, ${ago(span.from - view.past.end)}`, PARTS.map((part, index) => ({ name: part.name, value: percent(rows[index]?.[column ?? 0]?.value ?? null) })));
      },
    },
    visualMap: { show: false, type: "continuous", min: 0, max: 1, dimension: 2, inRange: { color: theme.dark ? RAMP.dark : RAMP.light } },
    series: [
      {
        type: "heatmap",
        progressive: 0,
        data: rows.flatMap((spans, row) => spans.flatMap(({ value }, column) => (value === null ? [] : [[column, row, value]]))),
      },
      // The axis on the right needs a series of its own.
      { type: "heatmap", yAxisIndex: 1, silent: true, data: [] },
    ],
  };
}
