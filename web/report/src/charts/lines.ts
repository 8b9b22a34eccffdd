// One figure of every design over simulated time, warm-up shaded.

import { axis, chart, legend, legendHeight, tip, tooltip, valueAxis } from "../chart.ts";
import { designDash } from "../colours.ts";
import { seconds } from "../format.ts";
import type { Page } from "../page.ts";
import type { Figure } from "../schema.ts";
import { roundMarks } from "../shape.ts";

/** `series` has one entry a design, as points of time in seconds and value. */
export function timeLines(page: Page, title: string, series: readonly (readonly [number, Figure][])[], text: (value: Figure) => string): HTMLElement {
  const { designs } = page;
  const names = designs.map((design) => design.name);
  const end = Math.max(...designs.map((design) => design.detail.timeline.end_seconds), 0);
  const warm = Math.max(...designs.map((design) => design.detail.timeline.measured_from_seconds), 0);
  const ticks = roundMarks(end);
  return chart(`${title} over simulated time, one line a design`, 240, (theme) => ({
    grid: { left: 8, right: 24, top: legendHeight(theme, names), bottom: 2, containLabel: true },
    legend: legend(theme, names),
    tooltip: {
      ...tooltip(theme),
      trigger: "axis",
      axisPointer: { type: "line", lineStyle: { color: theme.muted } },
      formatter: (hits) => {
        const list = Array.isArray(hits) ? hits : [hits];
        const time = Number((list[0]?.value as number[] | undefined)?.[0]);
        const lines = list.map((hit) => {
          const value = (hit.value as (number | string)[])[1];
          return { colour: String(hit.color), name: hit.seriesName ?? "", value: text(typeof value === "number" ? value : null) };
        });
        return tip(`${title} at ${seconds(time)}`, lines);
      },
    },
    xAxis: {
      type: "value",
      min: 0,
      max: end,
      ...axis(theme),
      axisTick: { customValues: ticks, lineStyle: { color: theme.muted } },
      axisLabel: { ...valueAxis(theme, seconds).axisLabel, customValues: ticks },
      splitLine: { show: false },
    },
    yAxis: { type: "value", min: 0, splitNumber: 4, ...valueAxis(theme, text) },
    series: designs.map((design, index) => ({
      type: "line",
      name: design.name,
      color: theme.hue(design.hue),
      lineStyle: { width: 1.6, type: designDash(design.index) },
      // One interval makes no line, but it makes a dot.
      symbol: (series[index]?.length ?? 0) > 1 ? "none" : "circle",
      data: (series[index] ?? []).map(([time, value]) => [time, value ?? "-"]),
      ...(index === 0 && warm > 0 && {
        markArea: {
          silent: true,
          itemStyle: { color: theme.muted, opacity: 0.12 },
          label: { color: theme.muted, fontSize: theme.fontSize, position: "insideTop" as const },
          data: [[{ name: "warm-up", xAxis: 0 }, { xAxis: warm }]] as [{ name: string; xAxis: number }, { xAxis: number }][],
        },
      }),
    })),
  }));
}
