// Energy of each design for the data that it moved, stacked by part: windows of different lengths move different amounts.

import { axis, chart, legend, shortened, tip, tooltip, valueAxis } from "../chart.ts";
import { partHue } from "../colours.ts";
import { joules } from "../format.ts";
import { figure } from "../metrics.ts";
import type { Design, Page } from "../page.ts";
import type { EnergyParts, Figure } from "../schema.ts";
import { sum } from "../shape.ts";

export const PARTS: [keyof EnergyParts, string][] = [["cores", "Drive cores"], ["dram", "Drive DRAM"], ["link", "Links"], ["flash", "Flash"]];

/** Joules of a part of all drives for each gigabyte moved; null where nothing was. */
export function perGigabyte({ result, detail }: Design, part: keyof EnergyParts): Figure {
  const [joules, bytes] = [detail.energy_joules[part], figure(result, "moved_bytes")];
  return joules === null || !bytes ? null : joules / (bytes / 1e9);
}

export function energyBars(page: Page): HTMLElement {
  const { designs } = page;
  const of = (index: number, part: keyof EnergyParts): Figure => (designs[index] ? perGigabyte(designs[index], part) : null);
  const total = (index: number): Figure => sum(PARTS.map(([part]) => of(index, part)));
  return chart("Energy per GB moved of each design by part", 54 + 30 * designs.length, (theme) => ({
    grid: { left: 4, right: 70, top: 30, bottom: 2, containLabel: true },
    legend: { ...legend(theme, PARTS.map(([, name]) => name)), icon: "rect", itemWidth: 12 },
    tooltip: {
      ...tooltip(theme),
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (hits) => {
        const index = (Array.isArray(hits) ? hits[0] : hits)?.dataIndex ?? 0;
        const lines = PARTS.map(([part, name]) => ({ colour: theme.hue(partHue(part)), name, value: joules(of(index, part)) }));
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
      data: designs.map((_, index) => of(index, part) ?? 0),
      ...(at === PARTS.length - 1 && {
        label: { show: true, position: "right" as const, color: theme.ink, fontSize: theme.fontSize, formatter: (hit: { dataIndex: number }) => joules(total(hit.dataIndex)) },
      }),
    })),
  }));
}
