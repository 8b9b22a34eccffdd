// Horizontal bars from zero: a group for each category, a bar in it for each series.

import { axis, chart as place, legend, legendHeight, shortened, tip, tooltip, valueAxis } from "../chart.ts";
import { designHues } from "../colours.ts";
import type { Chart } from "./schema.ts";
import { written } from "./units.ts";

/** Pixels of a bar, and between groups. */
const [BAR, GAP] = [13, 12];
const NAME_MAX = 34;

export function bars(chart: Chart): HTMLElement {
  const { categories, series, y } = chart;
  const names = series.map((one) => one.name);
  const hues = designHues(names);
  const text = written(y);
  const values = series.map((one) => {
    const found = new Map(one.points);
    return categories.map((_, index) => found.get(index) ?? null);
  });
  const said = categories.map((category, index) => `${category} ${names.map((name, one) => `${name} ${text(values[one]?.[index] ?? null)}`).join(", ")}`);
  const group = series.length * BAR + GAP;
  return place(`${chart.caption}: ${said.join("; ")}`, 60 + 24 * Math.ceil(names.length / 4) + group * categories.length, (theme) => ({
    grid: { left: 4, right: 76, top: legendHeight(theme, names), bottom: 26, containLabel: true },
    legend: legend(theme, names),
    tooltip: {
      ...tooltip(theme),
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (hits) => {
        const at = Number((Array.isArray(hits) ? hits[0] : hits)?.dataIndex);
        const found = names.map((name, one) => ({ colour: theme.hue(hues[one] ?? { light: "#666666", dark: "#b4b4b4" }), name, value: text(values[one]?.[at] ?? null) }));
        return tip(categories[at] ?? "", found);
      },
    },
    xAxis: { type: "value", scale: !y.from_zero, splitNumber: 4, name: y.name, nameLocation: "middle", nameGap: 28, ...valueAxis(theme, text) },
    yAxis: {
      type: "category",
      inverse: true,
      data: categories,
      ...axis(theme),
      axisTick: { show: false },
      axisLabel: { ...axis(theme).axisLabel, interval: 0, formatter: (name: string) => shortened(name, theme.width < 600 ? 18 : NAME_MAX) },
    },
    series: series.map((one, index) => ({
      type: "bar",
      name: one.name,
      color: theme.hue(hues[index] ?? { light: "#666666", dark: "#b4b4b4" }),
      barMaxWidth: BAR,
      barGap: "10%",
      data: (values[index] ?? []).map((value) => value ?? "-"),
      label: {
        show: true,
        position: "right",
        color: theme.ink,
        fontSize: theme.fontSize - 2,
        formatter: (hit) => text(values[index]?.[hit.dataIndex] ?? null),
      },
    })),
  }));
}
