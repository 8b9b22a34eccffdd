// Runs of a sweep by price and service, one colour a design, larger with more cores, with their front as a line.

import { chart, legend, legendHeight, tip, tooltip, valueAxis } from "../chart.ts";
import { designHues } from "../colours.ts";
import type { Price, Service } from "../explorer.ts";
import { PRICES, SERVICES, frontLine, wholePercent } from "../explorer.ts";
import type { Explorer, ExplorerLoad, ExplorerPoint } from "../schema.ts";

/** Everything that is known of a run, in the order in which it is read. */
export const FACTS: [string, (point: ExplorerPoint) => string][] = [
  ["Cores of a drive", (point) => String(point.cores)],
  ["Map in DRAM", (point) => wholePercent(point.memory_share)],
  ...PRICES.map(({ label, value, text }): [string, (point: ExplorerPoint) => string] => [`${label[0]?.toUpperCase()}${label.slice(1)}`, (point) => text(value(point))]),
  ...SERVICES.map(({ name, value, text }): [string, (point: ExplorerPoint) => string] => [name, (point) => text(value(point))]),
];

export function scatter(explorer: Explorer, load: ExplorerLoad, price: Price, service: Service, names: readonly string[]): HTMLElement {
  const places = load.points.filter((place) => explorer.points[place]);
  const points = places.map((place) => explorer.points[place] as ExplorerPoint);
  const designs = [...new Set(explorer.points.map((point) => point.design))];
  const hues = designHues(designs);
  const line = frontLine(points, price, service);
  const reference = load.reference === null ? undefined : explorer.points[load.reference];
  const served = reference ? service.value(reference) : null;
  const limit = served === null ? null : service.limit(served, explorer.within_percent / 100);
  const least = service.key === "p99";
  const title = `${service.name} against ${price.label}`;
  return chart(`${title}: ${points.length} runs, ${line.length} on the front`, 380, (theme) => ({
    grid: { left: 8, right: 28, top: legendHeight(theme, designs), bottom: 26, containLabel: true },
    legend: { ...legend(theme, designs), icon: "circle", itemWidth: 12 },
    tooltip: {
      ...tooltip(theme),
      formatter: (hit) => {
        const place = Number(((Array.isArray(hit) ? hit[0] : hit)?.value as number[] | undefined)?.[2]);
        const point = explorer.points[place];
        if (!point) return "";
        const on = point.fronts.includes(price[service.key]) ? "yes" : "no";
        const colour = theme.hue(hues[designs.indexOf(point.design)] ?? { light: "#666666", dark: "#b4b4b4" });
        const lines = [...FACTS.map(([name, text]) => ({ name, value: text(point) })), { name: "On this front", value: on }];
        return tip(names[place] ?? point.name, lines.map((one, index) => (index === 0 ? { ...one, colour } : one)));
      },
    },
    xAxis: { type: "value", scale: true, name: price.label, nameLocation: "middle", nameGap: 30, splitNumber: 5, ...valueAxis(theme, price.text), axisLabel: { ...valueAxis(theme, price.text).axisLabel, margin: 12 } },
    yAxis: { type: "value", scale: true, splitNumber: 5, ...valueAxis(theme, service.text) },
    series: [
      {
        type: "line",
        name: "front",
        data: line,
        step: "end",
        symbol: "none",
        silent: true,
        color: theme.ink,
        lineStyle: { color: theme.ink, width: 1.2, opacity: 0.7 },
        z: 1,
        ...(limit !== null && {
          markLine: {
            silent: true,
            symbol: "none",
            lineStyle: { color: theme.muted, width: 1, type: [4, 4] },
            label: { position: "insideStartTop" as const, color: theme.muted, fontSize: theme.fontSize, formatter: `${explorer.reference} ${least ? "+" : "−"}${explorer.within_percent} %` },
            data: [{ yAxis: limit }],
          },
        }),
      },
      // The axis reaches the dashed line also where no run does.
      ...(limit === null || !line[0] ? [] : [{ type: "scatter" as const, name: "limit", silent: true, symbolSize: 0, data: [[line[0][0], limit]] }]),
      // What is on the front is drawn over what is not.
      ...[false, true].flatMap((front) => designs.map((design, index) => ({
        type: "scatter" as const,
        name: design,
        color: theme.hue(hues[index] ?? { light: "#666666", dark: "#b4b4b4" }),
        z: front ? 3 : 2,
        data: places.flatMap((place) => {
          const point = explorer.points[place];
          const [paid, got] = point ? [price.value(point), service.value(point)] : [null, null];
          if (!point || point.design !== design || paid === null || got === null || point.fronts.includes(price[service.key]) !== front) return [];
          return [{
            value: [paid, got, place],
            label: { show: place === load.cheapest, formatter: "★", position: "top" as const, distance: 1, color: theme.ink, opacity: 1, fontSize: theme.fontSize + 4 },
            symbolSize: 5 + 2.2 * Math.min(12, point.cores),
            itemStyle: { opacity: front || place === load.cheapest ? 1 : 0.4, borderColor: front ? theme.ink : "transparent", borderWidth: front ? 1 : 0 },
          }];
        }),
      }))),
    ],
  }));
}
