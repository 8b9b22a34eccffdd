// How many requests take how long: shares in equal steps of the logarithm of latency.

import { axis, chart, legend, legendHeight, tip, tooltip, valueAxis } from "../chart.ts";
import { designDash } from "../colours.ts";
import { latency, percent } from "../format.ts";
import type { Page } from "../page.ts";
import { decades, histogram } from "../shape.ts";

const STEPS_PER_DECADE = 10;

export function latencyHistogram(page: Page): HTMLElement {
  const { designs } = page;
  const names = designs.map((design) => design.name);
  const shares = designs.map((design) => histogram(design.detail.latency, STEPS_PER_DECADE));
  const ticks = decades(shares.flat().map(([us]) => us));
  return chart("Share of requests by latency, one line a design", 340, (theme) => ({
    grid: { left: 8, right: 24, top: legendHeight(theme, names), bottom: 26, containLabel: true },
    legend: legend(theme, names),
    tooltip: {
      ...tooltip(theme),
      trigger: "axis",
      axisPointer: { type: "line", lineStyle: { color: theme.muted } },
      formatter: (hits) => {
        const list = Array.isArray(hits) ? hits : [hits];
        const us = Number((list[0]?.value as number[] | undefined)?.[0]);
        const half = 10 ** (0.5 / STEPS_PER_DECADE);
        const lines = designs.map((design, index) => ({
          colour: theme.hue(design.hue),
          name: design.name,
          value: percent(shares[index]?.find(([middle]) => Math.abs(middle / us - 1) < 1e-9)?.[1] ?? 0),
        }));
        return tip(`Requests that take ${latency(us / half)} to ${latency(us * half)}`, lines);
      },
    },
    xAxis: {
      type: "log",
      min: ticks[0] ?? 1,
      max: ticks[ticks.length - 1] ?? 10,
      name: "latency",
      nameLocation: "middle",
      nameGap: 28,
      ...axis(theme),
      axisTick: { customValues: ticks, lineStyle: { color: theme.muted } },
      axisLabel: { ...valueAxis(theme, latency).axisLabel, customValues: ticks },
      splitLine: { show: false },
    },
    yAxis: { type: "value", min: 0, ...(shares.flat().some(([, share]) => share > 0.8) && { max: 1 }), splitNumber: 4, ...valueAxis(theme, percent) },
    series: designs.map((design, index) => ({
      type: "line",
      name: design.name,
      color: theme.hue(design.hue),
      lineStyle: { width: 1.8, type: designDash(design.index) },
      step: "middle",
      symbol: "none",
      data: shares[index] ?? [],
    })),
  }));
}
