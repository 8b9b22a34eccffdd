// Who lends to whom on average: lenders on the left, borrowers on the right, width is the amount.

import { chart, shortened, tip, tooltip } from "../chart.ts";
import { REST, lenderHue } from "../colours.ts";
import { driveName } from "../page.ts";
import type { Design } from "../page.ts";
import type { Flow } from "../shape.ts";

const OTHERS = "others";

/** `colours` gives each lender its place in the palette. */
export function lendingFlows(design: Design, title: string, flows: readonly Flow[], colours: ReadonlyMap<number, number>, text: (value: number) => string): HTMLElement {
  const name = (drive: number | null): string => (drive === null ? OTHERS : driveName(design, drive));
  const sums = (side: "lender" | "borrower"): Map<number | null, number> => {
    const total = new Map<number | null, number>();
    for (const flow of flows) total.set(flow[side], (total.get(flow[side]) ?? 0) + flow.amount);
    return total;
  };
  const [lenders, borrowers] = [sums("lender"), sums("borrower")];
  // A drive may lend and borrow at different times: it is then a node on each side, told apart by the first letter.
  const nodes = new Map<string, { drive: number | null; total: number; verb: "lends" | "borrows" }>([
    ...[...lenders].map(([drive, total]) => [`l${drive}`, { drive, total, verb: "lends" }] as const),
    ...[...borrowers].sort(([a], [b]) => (a ?? Infinity) - (b ?? Infinity)).map(([drive, total]) => [`b${drive}`, { drive, total, verb: "borrows" }] as const),
  ]);
  const height = Math.max(110, 34 * Math.max(lenders.size, borrowers.size) + 24);
  return chart(`${title}: from lenders on the left to borrowers on the right`, height, (theme) => {
    const side = theme.printing ? 108 : 136;
    const hue = (drive: number | null): string => theme.hue(drive !== null && colours.has(drive) ? lenderHue(colours.get(drive) ?? 0) : REST);
    return {
      tooltip: {
        ...tooltip(theme),
        formatter: (hit) => {
          if (Array.isArray(hit)) return "";
          const data = hit.data as { source?: string; target?: string; name?: string; value?: number };
          const [from, to] = [nodes.get(data.source ?? ""), nodes.get(data.target ?? "")];
          if (from && to) return tip(`${name(from.drive)} to ${name(to.drive)}`, [{ name: "lends on average", value: text(data.value ?? 0) }]);
          const node = nodes.get(data.name ?? "");
          return node ? tip(name(node.drive), [{ name: `${node.verb} on average`, value: text(node.total) }]) : "";
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
              const node = nodes.get(String(hit.name));
              return node ? `${shortened(name(node.drive), 12)}  ${text(node.total)}` : "";
            },
          },
          data: [...nodes].map(([key, { drive, verb }]) =>
            verb === "lends"
              ? { name: key, depth: 0, label: { position: "left" as const }, itemStyle: { color: hue(drive), borderWidth: 0 } }
              : { name: key, depth: 1, itemStyle: { color: theme.muted, borderWidth: 0 } },
          ),
          links: flows.map((flow) => ({ source: `l${flow.lender}`, target: `b${flow.borrower}`, value: flow.amount })),
        },
      ],
    };
  });
}
