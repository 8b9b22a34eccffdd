// One sentence on what a section shows, from the figures. Pure functions, tested without a browser.

import { counted, loadName, wholePercent } from "./explorer.ts";
import { bytesPerSecond, cores, dollars, joules, latency, listed, mebibytes, percent, ratio } from "./format.ts";
import { declares, figure } from "./metrics.ts";
import { driveName, notShown } from "./page.ts";
import type { Design, Page } from "./page.ts";
import type { Cause, Explorer, Figure, LentResource, Needs, SplitRow } from "./schema.ts";
import { hosted, isTold, loadDiffers, ranked, ranksRuns, told } from "./ranking.ts";
import { best, eraseCounts, eraseSummary, intervals, mean } from "./shape.ts";

/** Least and greatest of the figures that exist, with the positions of both. */
function extremes(values: readonly Figure[]): { least: number; most: number } | null {
  const known = values.flatMap((value, index) => (value === null ? [] : [{ value, index }]));
  if (known.length === 0) return null;
  const by = (better: (a: number, b: number) => boolean) => known.reduce((kept, one) => (better(one.value, kept.value) ? one : kept)).index;
  return { least: by((a, b) => a < b), most: by((a, b) => a > b) };
}

/** The text of the smallest and of the greatest gap, with what that means where runs are ranked; all texts when there are few. */
function betweenEnds(page: Page, gaps: readonly { gap: number; text: string }[], small: string, great: string): string {
  const ends = extremes(gaps.map(({ gap }) => gap));
  if (!ends || gaps.length < 3) return listed(gaps.map(({ text }) => text));
  if (!ranksRuns(page)) return listed([gaps[ends.least]?.text ?? "", gaps[ends.most]?.text ?? ""]);
  return `${gaps[ends.least]?.text ?? ""}, ${small}, and ${gaps[ends.most]?.text ?? ""}, ${great}`;
}

/** Throughput that drops by less than this from its highest interval is steady. */
const STEADY_GAP = 0.1;

/** Cores busy for a smaller share than this do nothing that is worth comparing. */
const IDLE_SHARE = 0.005;

/** Whether every design counted its requests, and there were none. */
const noRequest = ({ designs }: Page): boolean => designs.every(({ result }) => figure(result, "ios") === 0);

/** Of which runs a sentence speaks, where not all are shown. */
const ofShown = (page: Page): string => (notShown(page) === "" ? "" : " of the runs shown");

const winners = ({ designs }: Page, places: readonly number[]): string => listed(places.map((index) => designs[index]?.name ?? ""));

/** Who is best, by throughput, latency and money; empty where the designs have no such figures. */
export function summaryFinding(page: Page): string {
  const { designs, comparable } = page;
  if (designs.length === 0) return "No design was finished.";
  const only = designs[0];
  if (only && designs.length === 1) {
    const { throughput_bytes_per_s: moved, latency_us } = only.result;
    const parts = [...(moved === null ? [] : [`moves ${bytesPerSecond(moved)}`]), ...(latency_us.mean === null ? [] : [`has a mean latency of ${latency(latency_us.mean)}`])];
    return parts.length === 0 ? "" : `${only.name} ${listed(parts)}.`;
  }
  const { seeds, seed } = page.document.report;
  if (seeds) return `These are the figures of seed ${seed} alone. “Is a difference one?” below has the means over all seeds, and which differences there are.`;
  if (!comparable) return "These runs serve different loads, so none is marked as the best.";
  const unpriced = designs.length - hosted(page).length < 2 || !declares(page.document, "throughput_bytes_per_s_per_dollar");
  const parts: [string, (design: Design) => Figure, "most" | "least", Needs][] = [
    ["most throughput", ({ result }) => result.throughput_bytes_per_s, "most", "nothing"],
    ["least mean latency", ({ result }) => result.latency_us.mean, "least", "nothing"],
    ...(loadDiffers(page) ? [] : [["least p99", (design) => told(design, "latency_us.p99"), "least", "equal_load"] satisfies (typeof parts)[number]]),
    ...(unpriced ? [] : [["most throughput for the money", ({ result }) => result.throughput_bytes_per_s_per_dollar, "most", "work_in_drives"] satisfies (typeof parts)[number]]),
  ];
  // Designs without a figure are not alike in it.
  const compared = parts.filter(([, value]) => designs.filter((design) => value(design) !== null).length > 1);
  if (compared.length === 0) return "";
  const text = compared.map(([what, ...by]) => `${what}: ${winners(page, ranked(page, ...by)) || "all alike"}`).join("; ");
  const first = notShown(page) === "" ? `${text[0]?.toUpperCase()}${text.slice(1)}` : `Of the runs shown, ${text}`;
  return `${first}. Figures within 1\u00a0% of the best share its mark.`;
}

/** How far apart the designs are in throughput. */
export function throughputFinding(page: Page): string {
  const { designs } = page;
  const values = designs.map((design) => design.result.throughput_bytes_per_s);
  const ends = extremes(values);
  if (!ends) return declares(page.document, "throughput_bytes_per_s") ? "No throughput was measured." : "These runs report no throughput.";
  const [most, least] = [values[ends.most] ?? 0, values[ends.least] ?? 0];
  if (most === 0) return "No data was moved in the measured window.";
  const top = designs[ends.most]?.name ?? "";
  if (designs.length === 1) return `${top} moves ${bytesPerSecond(most)}.`;
  if (best(values, "most").length === 0) return `All designs move ${bytesPerSecond(most)}, within 1 %.`;
  const bottom = designs[ends.least]?.name ?? "";
  if (!ranksRuns(page)) return `Throughput is between ${bytesPerSecond(least)} in ${bottom} and ${bytesPerSecond(most)} in ${top}.`;
  const times = least > 0 ? `, ${ratio(most / least)} times as much as ${bottom}` : "";
  return `${top} moves most data${ofShown(page)}, ${bytesPerSecond(most)}${times}.`;
}

/** Who is best and worst in the far tail. */
export function tailFinding(page: Page): string {
  const { designs } = page;
  const values = designs.map((design) => (design.detail.percentiles.length > 0 ? told(design, "latency_us.p999") : null));
  const ends = extremes(values);
  if (!ends && !noRequest(page) && designs.some((design) => !isTold(design, "latency_us.p999"))) return "Fewer than 1\u202f000 requests were completed in the measured window, too few to tell of one in a thousand.";
  if (!ends) return noRequest(page) ? "No request was completed in the measured window, so there is no distribution." : "There is no distribution of latency.";
  const describe = (index: number): string => `${latency(values[index] ?? null)} in ${designs[index]?.name ?? ""}`;
  if (designs.length === 1) return `One request in a thousand takes longer than ${describe(ends.most)}.`;
  const unequal = loadDiffers(page) ? " This ranks nobody: in a closed loop a slower design is asked for less, so fewer of its requests wait for flash." : "";
  return `One request in a thousand takes longer than ${describe(ends.least)}, and longer than ${describe(ends.most)}.${unequal}`;
}

/** The greatest cause of a row, with its share. */
export function greatestCause(row: SplitRow, causes: readonly Cause[]): { label: string; share: number } | null {
  const ends = extremes(row.parts_us);
  if (!ends || !row.latency_us) return null;
  return { label: causes[ends.most]?.label ?? "", share: (row.parts_us[ends.most] ?? 0) / row.latency_us };
}

/** What takes most time in the mean request, design by design. */
export function splitFinding(page: Page): string {
  const { designs, causes } = page;
  const shares = new Map<string, string[]>();
  for (const design of designs) {
    const row = design.result.latency_split.find((one) => one.at === "mean");
    const cause = row ? greatestCause(row, causes) : null;
    if (cause) shares.set(cause.label, [...(shares.get(cause.label) ?? []), `${percent(cause.share)} in ${design.name}`]);
  }
  const parts = [...shares].map(([label, designs]) => `${label.toLowerCase()} (${listed(designs)})`);
  if (parts.length === 0) return noRequest(page) ? "No request was completed in the measured window, so there is nothing to split." : "Latency is not split by cause.";
  return `What takes most of the mean request: ${listed(parts)}.`;
}

/** How unequally cores are busy. A design whose drives have no work for their cores is neither even nor uneven. */
export function utilizationFinding(page: Page): string {
  const { designs } = page;
  const idle: string[] = [];
  const gaps = designs.flatMap((design) => {
    const values = design.result.drives.map((drive) => drive.processor_utilization ?? null);
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
  return `In the measured window the cores of a drive are busy ${betweenEnds(page, gaps, "the most even design", "the least even")}.${unused && ` ${unused}`}`;
}

/** How steady throughput is in the measured window. */
export function steadinessFinding(page: Page): string {
  const { designs } = page;
  const recorded = designs.filter(({ detail: { timeline } }) => timeline.drives.some((drive) => drive.read_bytes_per_s ?? drive.write_bytes_per_s));
  if (designs.length > 0 && recorded.length === 0) return "No throughput was recorded over time.";
  const parts = recorded.flatMap(({ name, detail: { timeline } }) => {
    // Whole intervals in which all streams were at work.
    const whole = intervals(timeline).flatMap(([begin, end], index) => (begin >= timeline.measured_from_seconds && end <= timeline.measured_to_seconds && end - begin >= 0.9 * timeline.interval_seconds ? [index] : []));
    const totals = whole.map((index) => timeline.drives.reduce((total, drive) => total + (drive.read_bytes_per_s?.[index] ?? 0) + (drive.write_bytes_per_s?.[index] ?? 0), 0));
    const [least, most] = [Math.min(...totals), Math.max(...totals)];
    return totals.length < 2 ? [] : [{ most, gap: most > 0 ? (most - least) / most : 0, text: `${bytesPerSecond(least)} to ${bytesPerSecond(most)} in ${name}` }];
  });
  const ends = extremes(parts.map(({ gap }) => gap));
  if (!ends) return "The run is too short to tell how steady it is.";
  if (parts.every(({ most }) => most === 0)) return "No data was moved in the measured window.";
  const [steadiest, wildest] = [parts[ends.least]?.gap ?? 0, parts[ends.most]?.gap ?? 0];
  if (wildest < STEADY_GAP) return `In every interval of the measured window throughput is within ${percent(wildest)} of its highest.`;
  // Gaps that hardly differ tell nothing of the designs.
  if (wildest < 2 * steadiest) return `In the measured window throughput ranges from ${listed(parts.map(({ text }) => text))}.`;
  return `In the measured window throughput ranges from ${betweenEnds(page, parts, "the steadiest design", "the least steady")}.`;
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
  const most = Math.max(0, ...worn);
  const wear = most === 0 ? "" : ` The most erased superblock was erased ${most === 1 ? "once" : `${most} times`} since the drives were new.`;
  const nothing = designs.every(({ result }) => figure(result, "write_bytes") === 0) ? "Nothing was written." : "Write amplification is not known.";
  return parts.length === 0 ? `${nothing}${wear}` : `Slots written to flash for each slot that the host writes: ${listed(parts)}.${wear}`;
}

/** Cheapest, and least energy for the data moved. */
export function costFinding(page: Page): string {
  // Money and energy of a host that computes are not known.
  const designs = page.designs.length > 1 ? page.designs.filter((design) => !design.result.computes_on_host) : page.designs;
  const first = designs[0];
  if (!first) return page.designs.length === 0 ? "No design was finished." : "Host cores do part of the work in every design, and their energy and price are not known.";
  const others = hosted(page);
  const left = others.length === 0 || page.designs.length === 1 ? "" : ` Not ranked: ${listed(others)}, where host cores do part of the work.`;
  const [price, energy] = [designs.map((design) => design.result.bom_dollars), designs.map((design) => design.result.energy_joules_per_gb)];
  if (designs.length === 1) {
    const taken = energy[0] === null || energy[0] === undefined ? "" : ` and take ${joules(energy[0])} for each gigabyte moved`;
    return `The drives of ${first.name} cost ${dollars(price[0] ?? null)}${taken}.${left}`;
  }
  const named = (values: Figure[]): string => listed(best(values, "least").map((index) => designs[index]?.name ?? ""));
  const least = (values: Figure[]): Figure => values[extremes(values)?.least ?? 0] ?? null;
  if (!ranksRuns(page)) {
    const between = (values: Figure[], before: string, form: (value: Figure) => string): string => {
      const ends = extremes(values);
      const end = (place: number): string => `${form(values[place] ?? null)} in ${designs[place]?.name ?? ""}`;
      return ends === null ? "" : `${before} ${best(values, "least").length === 0 ? `about ${form(mean(values))}` : `between ${end(ends.least)} and ${end(ends.most)}`}.`;
    };
    const text = [between(price, "The drives cost", dollars), between(energy, "A gigabyte moved takes", joules)].filter((part) => part !== "").join(" ");
    return `${text || "No data was moved, and prices are not known."}${left}`;
  }
  const [cheap, frugal] = [named(price), named(energy)];
  return [
    extremes(price) === null ? "" : cheap ? `Cheapest${ofShown(page)}: ${cheap}, at ${dollars(least(price))}.` : `All designs that compare cost about ${dollars(mean(price))}.`,
    extremes(energy) === null ? "No data was moved, so there is no energy for each gigabyte." : frugal ? `Least energy for each gigabyte moved${ofShown(page)}: ${frugal}, ${joules(least(energy))}.` : `All designs that compare take about ${joules(mean(energy))} for each gigabyte moved.`,
  ].filter((part) => part !== "").join(" ") + left;
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
