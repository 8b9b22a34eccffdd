// One figure for each of many things, as columns: drives, or numbers of erases.

import { axis, chart, shortened, tip, tooltip, valueAxis } from "../chart.ts";
import type { Hue } from "../colours.ts";
import { digits } from "../format.ts";
import type { Figure } from "../schema.ts";

export interface Column {
  name: string;
  value: Figure;
  /** Value with its unit. */
  text: string;
}

/** `unit` names what the vertical axis counts, `along` what the horizontal one lists. */
export function columns(label: string, hue: Hue, unit: string, along: string, data: readonly Column[]): HTMLElement {
  const longest = Math.max(0, ...data.map((column) => Math.min(10, column.name.length)));
  return chart(label, 220, (theme) => ({
    grid: { left: 8, right: 24, top: 30, bottom: 22, containLabel: true },
    tooltip: {
      ...tooltip(theme),
      formatter: (hit) => {
        const one = data[Array.isArray(hit) ? 0 : hit.dataIndex];
        return one ? tip(one.name, [{ colour: theme.hue(hue), name: unit, value: one.text }]) : "";
      },
    },
    xAxis: {
      type: "category",
      data: data.map((column) => column.name),
      name: along,
      nameLocation: "middle",
      nameGap: longest > 4 && data.length > 6 ? 46 : 26,
      ...axis(theme),
      axisTick: { show: false },
      axisLabel: { ...axis(theme).axisLabel, fontSize: data.length > 8 ? 10 : theme.fontSize, hideOverlap: true, ...(data.length <= 16 && { interval: 0, rotate: longest > 4 && data.length > 6 ? 40 : 0 }), formatter: (name: string) => shortened(name, 10) },
    },
    yAxis: { type: "value", min: 0, splitNumber: 4, name: unit, ...valueAxis(theme, digits), nameTextStyle: { color: theme.muted, fontSize: theme.fontSize, align: "left" as const } },
    series: [{ type: "bar", barMaxWidth: 26, color: theme.hue(hue), data: data.map((column) => column.value ?? "-") }],
  }));
}
