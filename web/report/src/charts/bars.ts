// One figure of every design as horizontal bars from zero.

import { axis, chart, shortened, tip, tooltip, valueAxis } from "../chart.ts";
import { element } from "../dom.ts";
import type { Page } from "../page.ts";
import type { Figure } from "../schema.ts";

/** `text` writes a value with its unit; it labels the bars and the tooltip. */
export function designBars(page: Page, title: string, value: (design: Page["designs"][number]) => Figure, text: (value: Figure) => string): HTMLElement {
  const { designs } = page;
  const known = designs.flatMap((design) => value(design) ?? []);
  if (known.length === 0) return element("p", { class: "quiet" }, "Not known for any design.");
  const label = `${title}: ${designs.map((design) => `${design.name} ${text(value(design))}`).join(", ")}`;
  return chart(label, 26 + 30 * designs.length, (theme) => ({
    grid: { left: 4, right: 76, top: 4, bottom: 2, containLabel: true },
    tooltip: {
      ...tooltip(theme),
      formatter: (hit) => {
        const one = designs[Array.isArray(hit) ? 0 : hit.dataIndex];
        return one ? tip(one.name, [{ colour: theme.hue(one.hue), name: title, value: text(value(one)) }]) : "";
      },
    },
    xAxis: {
      type: "value",
      min: 0,
      splitNumber: 2,
      ...valueAxis(theme, text),
      // Marks of an axis on which everything is zero would mean nothing.
      ...(known.every((one) => one === 0) && { axisLabel: { show: false } }),
    },
    yAxis: {
      type: "category",
      inverse: true,
      data: designs.map((design) => design.name),
      ...axis(theme),
      axisTick: { show: false },
      axisLabel: { ...axis(theme).axisLabel, interval: 0, formatter: (name: string) => shortened(name, 16) },
    },
    series: [
      {
        type: "bar",
        barMaxWidth: 18,
        data: designs.map((design) => ({ value: value(design) ?? 0, itemStyle: { color: theme.hue(design.hue) } })),
        label: {
          show: true,
          position: "right",
          color: theme.ink,
          fontSize: theme.fontSize,
          formatter: (hit) => {
            const one = designs[hit.dataIndex];
            return one ? text(value(one)) : "";
          },
        },
      },
    ],
  }));
}
