// What lenders give over time, stacked.

import { axis, chart, legend, tip, tooltip } from "../chart.ts";
import { REST, lenderHue } from "../colours.ts";
import { seconds } from "../format.ts";
import { driveName } from "../page.ts";
import type { Design } from "../page.ts";
import { intervals, type lent } from "../shape.ts";

export function lentOverTime(design: Design, title: string, lenders: ReturnType<typeof lent>, colours: ReadonlyMap<number, number>, text: (value: number) => string): HTMLElement {
  const { timeline } = design.detail;
  const times = intervals(timeline);
  const name = (lender: number | null): string => (lender === null ? "other drives" : driveName(design, lender));
  const rows = Math.ceil(lenders.length / 4);
  return chart(`${title} over simulated time, stacked by lender`, 240 + 18 * rows, (theme) => {
    const hue = (lender: number | null): string => theme.hue(lender !== null && colours.has(lender) ? lenderHue(colours.get(lender) ?? 0) : REST);
    return {
      grid: { left: 8, right: 24, top: 14 + 18 * rows, bottom: 24, containLabel: true },
      legend: { ...legend(theme, lenders.map((entry) => name(entry.lender))), icon: "rect", itemWidth: 12 },
      tooltip: {
        ...tooltip(theme),
        trigger: "axis",
        axisPointer: { type: "line", lineStyle: { color: theme.muted } },
        formatter: (hits) => {
          const index = (Array.isArray(hits) ? hits[0] : hits)?.dataIndex ?? 0;
          const lines = lenders.map((entry) => ({ colour: hue(entry.lender), name: name(entry.lender), value: text(entry.amount[index] ?? 0) }));
          const total = lenders.reduce((sum, entry) => sum + (entry.amount[index] ?? 0), 0);
          return tip(`Lent from ${seconds(times[index]?.[0] ?? 0)} to ${seconds(times[index]?.[1] ?? 0)}`, [...lines, { name: "all", value: text(total) }]);
        },
      },
      xAxis: { type: "value", min: 0, max: timeline.end_seconds, ...axis(theme), axisLabel: { ...axis(theme).axisLabel, hideOverlap: true, showMaxLabel: false, formatter: (value: number) => seconds(value) }, splitLine: { show: false } },
      yAxis: { type: "value", min: 0, splitNumber: 4, ...axis(theme), axisLabel: { ...axis(theme).axisLabel, formatter: (value: number) => text(value) } },
      series: lenders.map((entry) => ({
        type: "line",
        name: name(entry.lender),
        stack: "lent",
        symbol: "none",
        color: hue(entry.lender),
        lineStyle: { width: 0.8, color: theme.surface },
        areaStyle: { opacity: 0.9 },
        data: times.map(([begin, end], index) => [(begin + end) / 2, entry.amount[index] ?? 0]),
      })),
    };
  });
}
