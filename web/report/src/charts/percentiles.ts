// Latency at each percentile: each nine as far from the next as from the one before, latency on a logarithmic axis.

import { axis, chart, legend, legendHeight, tip, tooltip, valueAxis } from "../chart.ts";
import { designDash } from "../colours.ts";
import { latency } from "../format.ts";
import type { Page } from "../page.ts";
import { decades, nines } from "../shape.ts";

/** The axis begins at the median: the tail is what the chart is for. */
const FIRST = 50;
const TICKS = [FIRST, 90, 99, 99.9, 99.99];

export function percentileCurves(page: Page): HTMLElement {
  const { designs } = page;
  const names = designs.map((design) => design.name);
  const drawn = (design: (typeof designs)[number]) => design.detail.percentiles.filter((point) => point.percent >= FIRST);
  const all = designs.flatMap((design) => drawn(design).map((point) => point.latency_us));
  const ticks = decades(all);
  const percents = [...new Set(designs.flatMap((design) => drawn(design).map((point) => point.percent)))].sort((a, b) => a - b);
  return chart("Latency at each percentile, one line a design", 340, (theme) => ({
    grid: { left: 8, right: 24, top: legendHeight(theme, names), bottom: 26, containLabel: true },
    legend: legend(theme, names),
    tooltip: {
      ...tooltip(theme),
      trigger: "axis",
      axisPointer: { type: "line", lineStyle: { color: theme.muted } },
      formatter: (hits) => {
        const list = Array.isArray(hits) ? hits : [hits];
        const at = Number((list[0]?.value as number[] | undefined)?.[0]);
        const percent = percents.find((one) => Math.abs(nines(one) - at) < 1e-9);
        const lines = designs.map((design) => ({
          colour: theme.hue(design.hue),
          name: design.name,
          value: latency(design.detail.percentiles.find((point) => point.percent === percent)?.latency_us ?? null),
        }));
        return tip(`${percent ?? ""} % of the requests take at most`, lines);
      },
    },
    xAxis: {
      type: "value",
      min: nines(FIRST),
      max: Math.max(nines(99), ...percents.map(nines)),
      name: "percentile",
      nameLocation: "middle",
      nameGap: 30,
      ...axis(theme),
      axisTick: { customValues: TICKS.map(nines), lineStyle: { color: theme.muted } },
      axisLabel: {
        ...axis(theme).axisLabel,
        customValues: TICKS.map(nines),
        margin: 12,
        formatter: (value: number) => `p${TICKS.find((tick) => Math.abs(nines(tick) - value) < 1e-6) ?? ""}`,
      },
      splitLine: { show: false },
    },
    yAxis: {
      type: "log",
      min: ticks[0] ?? 1,
      max: ticks[ticks.length - 1] ?? 10,
      ...axis(theme),
      axisTick: { customValues: ticks, lineStyle: { color: theme.muted } },
      axisLabel: { ...valueAxis(theme, latency).axisLabel, customValues: ticks },
    },
    series: designs.map((design) => ({
      type: "line",
      name: design.name,
      color: theme.hue(design.hue),
      lineStyle: { width: 2, type: designDash(design.index) },
      symbol: "circle",
      symbolSize: 5,
      data: drawn(design).map((point) => [nines(point.percent), point.latency_us !== null && point.latency_us > 0 ? point.latency_us : "-"]),
    })),
  }));
}
