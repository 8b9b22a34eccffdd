// Who lent what to whom.

import { captioned } from "../chart.ts";
import { lentOverTime } from "../charts/area.ts";
import { lendingFlows } from "../charts/sankey.ts";
import { switched } from "../choice.ts";
import { element, folded, section, table } from "../dom.ts";
import { lendingFinding } from "../findings.ts";
import { cores, mebibytes } from "../format.ts";
import { declares } from "../metrics.ts";
import { driveName } from "../page.ts";
import type { Design, Page } from "../page.ts";
import type { LentResource } from "../schema.ts";
import { flows, lent, roundStep } from "../shape.ts";

/** More drives than these are not told apart by eye. */
const DRIVES_MAX = 9;
/** More pairs of a design than these are not read. */
const PAIRS_MAX = 60;

const RESOURCES: { key: LentResource; title: string; over: string; text: (value: number) => string; step: (greatest: number) => number }[] = [
  { key: "processor", title: "Processor time lent, mean over the run", over: "Processor time lent", text: cores, step: (greatest) => roundStep(greatest, [1, 2, 5, 10], 10) },
  { key: "memory", title: "Mapping memory lent, mean over the run", over: "Mapping memory lent", text: mebibytes, step: (greatest) => roundStep(greatest, [1, 2], 2) },
];

export function lending(page: Page): HTMLElement | undefined {
  if (!declares(page.document, "harvest.processors_taken", "redirected_share")) return undefined;
  const title = "Who lent what to whom?";
  const lenders = page.designs.filter((design) => design.detail.lending.some((one) => (one.mean ?? 0) > 0));
  if (lenders.length === 0) return section("lending", title, lendingFinding(page));
  const most = lenders.reduce((kept, design) => (design.detail.lending.length >= kept.detail.lending.length ? design : kept));
  const show = (design: Design): HTMLElement[] => RESOURCES.map((resource) => pictures(design, resource));
  return section(
    "lending",
    title,
    lendingFinding(page),
    switched(
      [{ legend: "Design", options: lenders.map((design) => design.name), first: lenders.indexOf(most) }],
      ([chosen = 0]) => (lenders[chosen] ? [element("div", { class: "grid two" }, show(lenders[chosen]))] : []),
      () => lenders.map((design) => element("div", { class: "metric" }, element("h3", {}, design.name), element("div", { class: "grid two" }, show(design)))),
    ),
    folded("Means as a table", table(`Lent on average over the run; the ${PAIRS_MAX} strongest pairs of each design`, ["Design", "Lender", "Borrower", "Processor time", "Mapping memory"], lenders.flatMap(meanRows))),
  );
}

function pictures(design: Design, { key, title, over, text, step }: (typeof RESOURCES)[number]): HTMLElement {
  const shown = flows(design.detail.lending, key, DRIVES_MAX);
  if (shown.length === 0) return captioned(title, element("p", {}, `${design.name} lends none.`));
  const series = lent(design.detail.lending, key, design.detail.timeline.begin_seconds.length, DRIVES_MAX);
  const colours = new Map(series.flatMap(({ lender }, index) => (lender === null ? [] : [[lender, index] as const])));
  return element(
    "div",
    { class: "stack" },
    captioned(title, lendingFlows(design, title, shown, colours, text)),
    ...(design.detail.timeline.begin_seconds.length > 0 ? [captioned(`${over} over time, by lender`, lentOverTime(design, over, series, step, colours, text))] : []),
  );
}

function meanRows(design: Design): string[][] {
  const pairs = new Map<string, { lender: number; borrower: number; processor: number; memory: number }>();
  for (const one of design.detail.lending) {
    const key = `${one.lender}>${one.borrower}`;
    const pair = pairs.get(key) ?? { lender: one.lender, borrower: one.borrower, processor: 0, memory: 0 };
    pair[one.resource] += one.mean ?? 0;
    pairs.set(key, pair);
  }
  return [...pairs.values()]
    .filter((pair) => pair.processor > 0 || pair.memory > 0)
    .sort((a, b) => b.processor - a.processor || b.memory - a.memory || a.lender - b.lender)
    .slice(0, PAIRS_MAX)
    .sort((a, b) => a.lender - b.lender || a.borrower - b.borrower)
    .map((pair) => [design.name, driveName(design, pair.lender), driveName(design, pair.borrower), cores(pair.processor), mebibytes(pair.memory)]);
}
