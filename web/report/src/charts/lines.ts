// One figure of every design over simulated time, warm-up shaded.

import { axis, chart, legend, tip, tooltip } from "../chart.ts";
import { designDash } from "../colours.ts";
import { seconds } from "../format.ts";
import type { Page } from "../page.ts";
import type { Figure } from "../schema.ts";

/** `series` has one entry a design, as points of time in seconds and value. */
export function timeLines(page: Page, title: string, series: readonly (readonly [number, Figure][])[], text: (value: Figure) => string): HTMLElement {
  const { designs } = page;
  const end = Math.max(...designs.map((design) => design.detail.timeline.end_seconds), 0);
  const warm = Math.max(...designs.map((design) => design.detail.timeline.measured_from_seconds), 0);
  return chart(`${title} over simulated time, one line a design`, 260, (theme) => ({
    grid: { left: 8, right: 24, top: designs.length > 6 ? 52 : 34, bottom: 24, containLabel: true },
    legend: legend(theme, designs.map((design) => design.name)),
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
      axisLabel: { ...axis(theme).axisLabel, hideOverlap: true, showMaxLabel: false, formatter: (value: number) => seconds(value) },
      splitLine: { show: false },
    },
    yAxis: { type: "value", min: 0, splitNumber: 4, ...axis(theme), axisLabel: { ...axis(theme).axisLabel, formatter: (value: number) => text(value) } },
    series: designs.map((design, index) => ({
      type: "line",
      name: design.name,
      color: theme.hue(design.hue),
      lineStyle: { width: 1.6, type: designDash(design.index) },
      symbol: "none",
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
