// Values along a quantity, one line a series: plain, with marks, or as steps of histograms that follow each other.

import { axis, chart as place, legend, legendHeight, tip, tooltip, valueAxis } from "../chart.ts";
import type { Theme } from "../chart.ts";
import { RAMP, designDash, designHues } from "../colours.ts";
import type { Chart, ChartSeries } from "./schema.ts";
import { written } from "./units.ts";

/** The lightest colours of the ramp would not be seen on the ground. */
const RAMP_FROM = 0.25;

export function lines(chart: Chart): HTMLElement {
  const { x, y, form, series } = chart;
  const names = series.map((one) => one.name);
  const hues = designHues(names);
  const [along, up] = [written(x), written(y)];
  const highest = Math.max(...series.flatMap((one) => one.points.map(([, value]) => value ?? 0)));
  const colour = (theme: Theme, index: number): string =>
    form === "steps" ? onRamp(theme, index / Math.max(1, series.length - 1)) : theme.hue(hues[index] ?? { light: "#666666", dark: "#b4b4b4" });
  return place(`${chart.caption}, ${series.length > 1 ? "one line each: " + names.join(", ") : names.join()}`, form === "steps" ? 320 : 280, (theme) => ({
    grid: { left: 8, right: 24, top: legendHeight(theme, names) + 20, bottom: 26, containLabel: true },
    legend: legend(theme, names),
    tooltip: {
      ...tooltip(theme),
      // Curves may turn back, so that several of their points stand above one place of the axis.
      trigger: form === "curve" ? "item" : "axis",
      axisPointer: { type: "line", lineStyle: { color: theme.muted } },
      formatter: (hits) => {
        const list = Array.isArray(hits) ? hits : [hits];
        const at = Number((list[0]?.value as number[] | undefined)?.[0]);
        const found = list.map((hit) => {
          const value = (hit.value as (number | string)[])[1];
          return { colour: String(hit.color), name: hit.seriesName ?? "", value: up(typeof value === "number" ? value : null) };
        });
        return tip(`${x.name}: ${along(at)}`, found);
      },
    },
    xAxis: {
      type: "value",
      scale: !x.from_zero,
      name: x.name,
      nameLocation: "middle",
      nameGap: 28,
      ...axis(theme),
      axisLabel: { ...valueAxis(theme, along).axisLabel, showMaxLabel: false },
      splitLine: { show: false },
    },
    // No share is above the whole, and an axis would leave room for it.
    yAxis: { type: "value", scale: !y.from_zero, ...(y.unit === "share" && highest > 0.8 && highest <= 1 && { max: 1, interval: 0.25 }), splitNumber: 4, name: y.name, ...valueAxis(theme, up), nameTextStyle: { color: theme.muted, fontSize: theme.fontSize, align: "left" as const } },
    series: series.map((one, index) => ({
      type: "line",
      name: one.name,
      color: colour(theme, index),
      lineStyle: { width: 1.7, type: form === "steps" ? "solid" : designDash(index) },
      ...(form === "steps" && { step: "middle" as const, areaStyle: { color: colour(theme, index), opacity: 0.12 } }),
      symbol: marked(chart, one) ? "circle" : "none",
      symbolSize: 4,
      data: one.points.map(([at, value]) => [at, value ?? "-"]),
    })),
  }));
}

/** One point makes no line, but it makes a dot. */
const marked = ({ form }: Chart, { points }: ChartSeries): boolean => form === "curve" || points.length === 1;

/** A colour of the ramp between two of its own; `part` from 0 to 1. */
function onRamp(theme: Theme, part: number): string {
  const ramp = theme.dark ? RAMP.dark : RAMP.light;
  const place = (RAMP_FROM + (1 - RAMP_FROM) * part) * (ramp.length - 1);
  const [below, above] = [ramp[Math.floor(place)], ramp[Math.ceil(place)]].map((one) => [1, 3, 5].map((from) => Number.parseInt((one ?? "#888888").slice(from, from + 2), 16)));
  const mixed = (below ?? []).map((from, index) => Math.round(from + ((above?.[index] ?? from) - from) * (place % 1)));
  return `#${mixed.map((one) => one.toString(16).padStart(2, "0")).join("")}`;
}
