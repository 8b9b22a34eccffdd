// What lenders give over time, stacked. `step` gives the distance of the marks of the axis.

import { axis, chart, legend, legendHeight, tip, tooltip, valueAxis } from "../chart.ts";
import { REST, lenderHue } from "../colours.ts";
import { seconds } from "../format.ts";
import { driveName } from "../page.ts";
import type { Design } from "../page.ts";
import { intervals, roundMarks, type lent } from "../shape.ts";

export function lentOverTime(design: Design, title: string, lenders: ReturnType<typeof lent>, step: (greatest: number) => number, colours: ReadonlyMap<number, number>, text: (value: number) => string): HTMLElement {
  const { timeline } = design.detail;
  const times = intervals(timeline);
  const name = (lender: number | null): string => (lender === null ? "others" : driveName(design, lender));
  const names = lenders.map((entry) => name(entry.lender));
  const greatest = Math.max(0, ...times.map((_, index) => lenders.reduce((sum, entry) => sum + (entry.amount[index] ?? 0), 0)));
  return chart(`${title} over simulated time, stacked by lender`, 250, (theme) => {
    const hue = (lender: number | null): string => theme.hue(lender !== null && colours.has(lender) ? lenderHue(colours.get(lender) ?? 0) : REST);
    return {
      grid: { left: 8, right: 24, top: legendHeight(theme, names), bottom: 2, containLabel: true },
      legend: { ...legend(theme, names), icon: "rect", itemWidth: 12 },
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
      xAxis: { type: "value", min: 0, max: timeline.end_seconds, ...axis(theme), axisTick: { customValues: roundMarks(timeline.end_seconds), lineStyle: { color: theme.muted } }, axisLabel: { ...valueAxis(theme, seconds).axisLabel, customValues: roundMarks(timeline.end_seconds) }, splitLine: { show: false } },
      yAxis: { type: "value", min: 0, max: Math.max(1, Math.ceil(greatest / step(greatest))) * step(greatest), interval: step(greatest), ...valueAxis(theme, text) },
      series: lenders.map((entry) => ({
        type: "line",
        name: name(entry.lender),
        stack: "lent",
        step: "middle",
        // One interval makes no area, but it makes a dot.
        symbol: times.length > 1 ? "none" : "circle",
        color: hue(entry.lender),
        lineStyle: { width: 0 },
        areaStyle: { opacity: 0.9 },
        data: times.map(([begin, end], index) => [(begin + end) / 2, entry.amount[index] ?? 0]),
      })),
    };
  });
}
