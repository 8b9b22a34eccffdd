// One sentence on what a section shows, from the figures. Pure functions, tested without a browser.

import { counted, loadName, wholePercent } from "./explorer.ts";
import { bytesPerSecond, cores, dollars, joules, latency, listed, mebibytes, percent, ratio } from "./format.ts";
import { driveName } from "./page.ts";
import type { Design, Page } from "./page.ts";
import type { Cause, Explorer, Figure, LentResource, SplitRow } from "./schema.ts";
import { best, eraseCounts, eraseSummary, mean } from "./shape.ts";

/** Least and greatest of the figures that exist, with the positions of both. */
function extremes(values: readonly Figure[]): { least: number; most: number } | null {
  const known = values.flatMap((value, index) => (value === null ? [] : [{ value, index }]));
  if (known.length === 0) return null;
  const by = (better: (a: number, b: number) => boolean) => known.reduce((kept, one) => (better(one.value, kept.value) ? one : kept)).index;
  return { least: by((a, b) => a < b), most: by((a, b) => a > b) };
}

/** The text of the smallest and of the greatest gap, with what that means; all texts when there are few. */
function betweenEnds(gaps: readonly { gap: number; text: string }[], small: string, great: string): string {
  const ends = extremes(gaps.map(({ gap }) => gap));
  if (!ends || gaps.length < 3) return listed(gaps.map(({ text }) => text));
  return `${gaps[ends.least]?.text ?? ""}, ${small}, and ${gaps[ends.most]?.text ?? ""}, ${great}`;
}

/** Cores busy for a smaller share than this do nothing that is worth comparing. */
const IDLE_SHARE = 0.005;

function winners(designs: readonly Design[], values: readonly Figure[], better: "most" | "least"): string {
  return listed(best(values, better).map((index) => designs[index]?.name ?? ""));
}

/** Who is best, by throughput, latency and money. */
export function summaryFinding({ designs, comparable }: Page): string {
  if (designs.length === 0) return "No design was finished.";
  const only = designs[0];
  if (only && designs.length === 1) {
    return `${only.name} moves ${bytesPerSecond(only.result.throughput_bytes_per_s)} with a mean latency of ${latency(only.result.latency_us.mean)}.`;
  }
  if (!comparable) return "These runs serve different loads, so none is marked as the best.";
  const parts: [string, Figure[], "most" | "least"][] = [
    ["most throughput", designs.map((design) => design.result.throughput_bytes_per_s), "most"],
    ["least mean latency", designs.map((design) => design.result.latency_us.mean), "least"],
    ["least p99", designs.map((design) => design.result.latency_us.p99), "least"],
    ["most throughput for the money", designs.map((design) => design.result.throughput_bytes_per_s_per_dollar), "most"],
  ];
  const sentences = parts.map(([what, values, better]) => `${what}: ${winners(designs, values, better) || "all alike"}`);
  const text = sentences.join("; ");
  return `${text[0]?.toUpperCase()}${text.slice(1)}. Figures within 1 % of the best share its mark.`;
}

/** How far apart the designs are in throughput. */
export function throughputFinding({ designs }: Page): string {
  const values = designs.map((design) => design.result.throughput_bytes_per_s);
  const ends = extremes(values);
  if (!ends) return "No throughput was measured.";
  const [most, least] = [values[ends.most] ?? 0, values[ends.least] ?? 0];
  if (most === 0) return "No data was moved in the measured window.";
  const top = designs[ends.most]?.name ?? "";
  if (designs.length === 1) return `${top} moves ${bytesPerSecond(most)}.`;
  if (best(values, "most").length === 0) return `All designs move ${bytesPerSecond(most)}, within 1 %.`;
  const bottom = designs[ends.least]?.name ?? "";
  const times = least > 0 ? `, ${ratio(most / least)} times as much as ${bottom}` : "";
  return `${top} moves most data, ${bytesPerSecond(most)}${times}.`;
}

/** Who is best and worst in the far tail. */
export function tailFinding({ designs }: Page): string {
  const values = designs.map((design) => (design.detail.percentiles.length > 0 ? design.result.latency_us.p999 : null));
  const ends = extremes(values);
  if (!ends) return "No request was completed in the measured window, so there is no distribution.";
  const describe = (index: number): string => `${latency(values[index] ?? null)} in ${designs[index]?.name ?? ""}`;
  if (designs.length === 1) return `One request in a thousand takes longer than ${describe(ends.most)}.`;
  return `One request in a thousand takes longer than ${describe(ends.least)}, and longer than ${describe(ends.most)}.`;
}

/** The greatest cause of a row, with its share. */
export function greatestCause(row: SplitRow, causes: readonly Cause[]): { label: string; share: number } | null {
  const ends = extremes(row.parts_us);
  if (!ends || !row.latency_us) return null;
  return { label: causes[ends.most]?.label ?? "", share: (row.parts_us[ends.most] ?? 0) / row.latency_us };
}

/** What takes most time in the mean request, design by design. */
export function splitFinding({ designs, causes }: Page): string {
  const shares = new Map<string, string[]>();
  for (const design of designs) {
    const row = design.result.latency_split.find((one) => one.at === "mean");
    const cause = row ? greatestCause(row, causes) : null;
    if (cause) shares.set(cause.label, [...(shares.get(cause.label) ?? []), `${percent(cause.share)} in ${design.name}`]);
  }
  const parts = [...shares].map(([label, designs]) => `${label.toLowerCase()} (${listed(designs)})`);
  if (parts.length === 0) return "No request was completed in the measured window, so there is nothing to split.";
  return `What takes most of the mean request: ${listed(parts)}.`;
}

/** How unequally cores are busy. A design whose drives have no work for their cores is neither even nor uneven. */
export function utilizationFinding({ designs }: Page): string {
  const idle: string[] = [];
  const gaps = designs.flatMap((design) => {
    const values = design.result.drives.map((drive) => drive.processor_utilization);
    const ends = extremes(values);
    if (!ends) return [];
    const [most, least] = [values[ends.most] ?? 0, values[ends.least] ?? 0];
    if (most < IDLE_SHARE) {
      idle.push(design.name);
      return [];
    }
    const text = values.length === 1 ? percent(most) : `${percent(least)} (${driveName(design, ends.least)}) to ${percent(most)} (${driveName(design, ends.most)})`;
    return [{ gap: most - least, text: `${text} in ${design.name}` }];
  });
  const unused = idle.length === 0 ? "" : `The drives of ${listed(idle)} hardly use their cores.`;
  if (gaps.length === 0) return unused || "There is no drive to look at.";
  return `In the measured window the cores of a drive are busy ${betweenEnds(gaps, "the most even design", "the least even")}.${unused && ` ${unused}`}`;
}

/** How steady throughput is in the measured window. */
export function steadinessFinding({ designs }: Page): string {
  const parts = designs.flatMap(({ name, detail: { timeline } }) => {
    const measured = timeline.begin_seconds.flatMap((begin, index) => (begin >= timeline.measured_from_seconds ? [index] : []));
    // The last interval may be cut short, and streams end one after the other in it.
    const totals = measured.slice(0, -1).map((index) => timeline.drives.reduce((total, drive) => total + (drive.read_bytes_per_s[index] ?? 0) + (drive.write_bytes_per_s[index] ?? 0), 0));
    const [least, most] = [Math.min(...totals), Math.max(...totals)];
    return totals.length < 2 ? [] : [{ gap: most > 0 ? (most - least) / most : 0, text: `${bytesPerSecond(least)} to ${bytesPerSecond(most)} in ${name}` }];
  });
  return parts.length === 0 ? "The run is too short to tell how steady it is." : `In the measured window throughput ranges from ${betweenEnds(parts, "the steadiest design", "the least steady")}.`;
}

/** What is lent on average, or that nothing is. */
export function lendingFinding({ designs }: Page): string {
  const total = (design: Design, resource: LentResource): number =>
    design.detail.lending.filter((lent) => lent.resource === resource).reduce((sum, lent) => sum + (lent.mean ?? 0), 0);
  const lending = designs.flatMap((design) => {
    const [processor, memory] = [total(design, "processor"), total(design, "memory")];
    const amounts = [...(processor > 0 ? [cores(processor)] : []), ...(memory > 0 ? [mebibytes(memory)] : [])];
    return amounts.length === 0 ? [] : [{ name: design.name, text: `${listed(amounts)} in ${design.name}` }];
  });
  if (lending.length === 0) return "Nothing is lent in any design: every drive works with what it has.";
  const others = designs.map((design) => design.name).filter((name) => lending.every((one) => one.name !== name));
  const rest = others.length === 0 ? "" : ` Nothing is lent in ${listed(others)}.`;
  return `Drives lend each other on average ${listed(lending.map((one) => one.text))}.${rest}`;
}

/** Write amplification and wear, design by design. */
export function wearFinding({ designs }: Page): string {
  const parts = designs.flatMap((design) => {
    const waf = design.result.write_amplification;
    return waf === null || waf === 0 ? [] : [`${ratio(waf)} in ${design.name}`];
  });
  const worn = designs.flatMap((design) => {
    const { most } = eraseSummary(eraseCounts(design.detail));
    return most === null ? [] : [most];
  });
  const wear = worn.length === 0 ? "" : ` No superblock was erased more than ${Math.max(...worn)} times since the drives were new.`;
  return parts.length === 0 ? `Nothing was written.${wear}` : `Slots written to flash for each slot that the host writes: ${listed(parts)}.${wear}`;
}

/** Joules for each gigabyte moved. */
export function joulesPerGigabyte(design: Design): Figure {
  const { energy_joules, read_bytes, write_bytes } = design.result;
  return energy_joules === null || read_bytes + write_bytes === 0 ? null : energy_joules / ((read_bytes + write_bytes) / 1e9);
}

/** Cheapest, and least energy for the data moved. */
export function costFinding({ designs }: Page): string {
  const first = designs[0];
  if (!first) return "No design was finished.";
  const [price, energy] = [designs.map((design) => design.result.bom_dollars), designs.map(joulesPerGigabyte)];
  if (designs.length === 1) return `The drives of ${first.name} cost ${dollars(price[0] ?? null)} and take ${joules(energy[0] ?? null)} for each gigabyte moved.`;
  const least = (values: Figure[]): Figure => values[extremes(values)?.least ?? 0] ?? null;
  const cheap = winners(designs, price, "least");
  const frugal = winners(designs, energy, "least");
  return [
    extremes(price) === null ? "" : cheap ? `Cheapest: ${cheap}, at ${dollars(least(price))}.` : `All designs cost about ${dollars(mean(price))}.`,
    extremes(energy) === null ? "No data was moved, so there is no energy for each gigabyte." : frugal ? `Least energy for each gigabyte moved: ${frugal}, ${joules(least(energy))}.` : `All designs take about ${joules(mean(energy))} for each gigabyte moved.`,
  ].join(" ");
}

/** What the explorer found: how many runs are dominated, and the cheapest of the same service at each load. */
export function explorerFinding(page: Page, explorer: Explorer): string {
  const dominated = explorer.loads.reduce((total, load) => total + load.dominated, 0);
  const first = `Of ${explorer.points.length} runs ${dominated} are dominated: another run of the same load is at least as good in cost, p99 and throughput, and better in one.`;
  const answers = explorer.loads.map((load) => {
    const reference = load.reference === null ? undefined : explorer.points[load.reference];
    const cheapest = load.cheapest === null ? undefined : explorer.points[load.cheapest];
    const at = explorer.loads.length > 1 ? `with ${loadName(page, load)}: ` : "";
    if (!reference || !cheapest) return `${at}${explorer.reference} has no figures to compare with`;
    if (load.cheapest === load.reference) return `${at}nothing cheaper than ${explorer.reference}`;
    const saved = reference.drive_dollars && cheapest.drive_dollars ? `, ${percent(1 - cheapest.drive_dollars / reference.drive_dollars)} less than ${explorer.reference}` : "";
    return `${at}${cheapest.design} with ${counted(cheapest.cores, "core")} and ${wholePercent(cheapest.memory_share)} of the map in DRAM, at ${dollars(cheapest.drive_dollars)} a drive${saved}`;
  });
  return `${first} Cheapest within ${explorer.within_percent} % of the throughput and p99 of ${explorer.reference}: ${answers.join("; ")}.`;
}
