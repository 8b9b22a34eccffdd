// Where the time of a request goes: one stacked bar a design, one colour a cause.

import { axis, chart, shortened, tip, tooltip, valueAxis } from "../chart.ts";
import { causeHue } from "../colours.ts";
import { latency, percent } from "../format.ts";
import type { Page } from "../page.ts";
import type { SplitRow } from "../schema.ts";

/** `rows` has one entry a design; a design without such a row has an empty bar. */
export function splitBars(page: Page, title: string, rows: readonly (SplitRow | undefined)[]): HTMLElement {
  const { designs, causes } = page;
  return chart(`${title}: time of a request by cause`, 42 + 34 * designs.length, (theme) => ({
    grid: { left: 4, right: 70, top: 4, bottom: 2, containLabel: true },
    tooltip: {
      ...tooltip(theme),
      trigger: "axis",
      axisPointer: { type: "shadow" },
      formatter: (hits) => {
        const index = (Array.isArray(hits) ? hits[0] : hits)?.dataIndex ?? 0;
        const row = rows[index];
        const lines = causes.map((cause, at) => {
          const us = row?.parts_us[at] ?? null;
          const share = us !== null && row?.latency_us ? us / row.latency_us : null;
          return { colour: theme.hue(causeHue(at)), name: cause.label, value: `${latency(us)} (${percent(share)})` };
        });
        return tip(`${designs[index]?.name ?? ""}: ${latency(row?.latency_us ?? null)}`, lines);
      },
    },
    xAxis: {
      type: "value",
      min: 0,
      splitNumber: 3,
      ...valueAxis(theme, latency),
    },
    yAxis: {
      type: "category",
      inverse: true,
      data: designs.map((design) => design.name),
      ...axis(theme),
      axisTick: { show: false },
      axisLabel: { ...axis(theme).axisLabel, interval: 0, formatter: (name: string) => shortened(name, 16) },
    },
    series: causes.map((cause, at) => ({
      type: "bar",
      name: cause.label,
      stack: "causes",
      barMaxWidth: 22,
      color: theme.hue(causeHue(at)),
      // A thin edge keeps neighbours apart where their colours look alike.
      itemStyle: { borderColor: theme.surface, borderWidth: 0.5 },
      data: rows.map((row) => row?.parts_us[at] ?? 0),
      ...(at === causes.length - 1 && {
        label: {
          show: true,
          position: "right" as const,
          color: theme.ink,
          fontSize: theme.fontSize,
          formatter: (hit: { dataIndex: number }) => latency(rows[hit.dataIndex]?.latency_us ?? null),
        },
      }),
    })),
  }));
}
