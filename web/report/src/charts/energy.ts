// Energy of each design, stacked by part.

import { axis, chart, legend, shortened, tip, tooltip, valueAxis } from "../chart.ts";
import { partHue } from "../colours.ts";
import { joules } from "../format.ts";
import type { Page } from "../page.ts";
import type { EnergyParts } from "../schema.ts";
import { sum } from "../shape.ts";

export const PARTS: [keyof EnergyParts, string][] = [["cores", "Drive cores"], ["dram", "Drive DRAM"], ["link", "Links"], ["flash", "Flash"]];

export function energyBars(page: Page): HTMLElement {
  const { designs } = page;
  const total = (index: number) => sum(Object.values(designs[index]?.detail.energy_joules ?? {}) as (number | null)[]);
  return chart("Energy of each design by part", 54 + 30 * designs.length, (theme) => ({
    grid: { left: 4, right: 70, top: 30, bottom: 2, containLabel: true },
    legend: { ...legend(theme, PARTS.map(([, name]) => name)), icon: "rect", itemWidth: 12 },
    tooltip: {
      ...tooltip(theme),
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (hits) => {
        const index = (Array.isArray(hits) ? hits[0] : hits)?.dataIndex ?? 0;
        const parts = designs[index]?.detail.energy_joules;
        const lines = PARTS.map(([part, name]) => ({ colour: theme.hue(partHue(part)), name, value: joules(parts?.[part] ?? null) }));
        return tip(`${designs[index]?.name ?? ""}: ${joules(total(index))}`, lines);
      },
    },
    xAxis: { type: "value", min: 0, splitNumber: 3, ...valueAxis(theme, joules) },
    yAxis: { type: "category", inverse: true, data: designs.map((design) => design.name), ...axis(theme), axisTick: { show: false }, axisLabel: { ...axis(theme).axisLabel, interval: 0, formatter: (name: string) => shortened(name, 16) } },
    series: PARTS.map(([part, name], at) => ({
      type: "bar",
      name,
      stack: "energy",
      barMaxWidth: 18,
      color: theme.hue(partHue(part)),
      itemStyle: { borderColor: theme.surface, borderWidth: 0.5 },
      data: designs.map((design) => design.detail.energy_joules[part] ?? 0),
      ...(at === PARTS.length - 1 && {
        label: { show: true, position: "right" as const, color: theme.ink, fontSize: theme.fontSize, formatter: (hit: { dataIndex: number }) => joules(total(hit.dataIndex)) },
      }),
    })),
  }));
}
