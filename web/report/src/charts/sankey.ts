// Who lends to whom on average: lenders on the left, borrowers on the right, width is the amount.

import { chart, shortened, tip, tooltip } from "../chart.ts";
import { REST, lenderHue } from "../colours.ts";
import { driveName } from "../page.ts";
import type { Design } from "../page.ts";
import type { Flow } from "../shape.ts";

/** `colours` gives each lender its place in the palette. */
export function lendingFlows(design: Design, title: string, flows: readonly Flow[], colours: ReadonlyMap<number, number>, text: (value: number) => string): HTMLElement {
  const lenders = [...new Set(flows.map((flow) => flow.lender))].sort((a, b) => a - b);
  const borrowers = [...new Set(flows.map((flow) => flow.borrower))].sort((a, b) => a - b);
  const total = (side: "lender" | "borrower", drive: number): number =>
    flows.filter((flow) => flow[side] === drive).reduce((sum, flow) => sum + flow.amount, 0);
  const hue = (lender: number) => (colours.has(lender) ? lenderHue(colours.get(lender) ?? 0) : REST);
  const rows = Math.max(lenders.length, borrowers.length);
  return chart(`${title}: from lenders on the left to borrowers on the right`, Math.max(130, 34 * rows + 24), (theme) => {
    const side = theme.printing ? 96 : 124;
    return {
    tooltip: {
      ...tooltip(theme),
      formatter: (hit) => {
        if (Array.isArray(hit)) return "";
        const data = hit.data as { source?: string; target?: string; name?: string; value?: number };
        const drive = (key = ""): string => driveName(design, Number(key.slice(1)));
        if (data.source) return tip(`${drive(data.source)} lends ${drive(data.target)}`, [{ name: "on average", value: text(data.value ?? 0) }]);
        const side = data.name?.startsWith("l") ? "lender" : "borrower";
        return tip(drive(data.name), [{ name: side === "lender" ? "lends on average" : "borrows on average", value: text(total(side, Number(data.name?.slice(1)))) }]);
      },
    },
    series: [
      {
        type: "sankey",
        left: side,
        right: side,
        top: 8,
        bottom: 8,
        nodeWidth: 12,
        nodeGap: 10,
        draggable: false,
        // Zero keeps the order of the drives.
        layoutIterations: 0,
        emphasis: { focus: "adjacency" },
        lineStyle: { color: "source", opacity: theme.dark ? 0.55 : 0.4, curveness: 0.5 },
        label: {
          color: theme.ink,
          fontSize: theme.fontSize,
          formatter: (hit) => {
            const key = String(hit.name);
            const side = key.startsWith("l") ? "lender" : "borrower";
            const drive = Number(key.slice(1));
            return `${shortened(driveName(design, drive), 12)}  ${text(total(side, drive))}`;
          },
        },
        // A drive may lend and borrow at different times: it is then a node on each side.
        data: [
          ...lenders.map((drive) => ({ name: `l${drive}`, depth: 0, label: { position: "left" as const }, itemStyle: { color: theme.hue(hue(drive)), borderWidth: 0 } })),
          ...borrowers.map((drive) => ({ name: `b${drive}`, depth: 1, itemStyle: { color: theme.muted, borderWidth: 0 } })),
        ],
        links: flows.map((flow) => ({ source: `l${flow.lender}`, target: `b${flow.borrower}`, value: flow.amount })),
      },
    ],
  };
  });
}
