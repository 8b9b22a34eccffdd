// From the document to what the charts draw. Pure functions, tested without a browser.

import type { DesignDetail, Figure, Lending, LentResource, Timeline } from "./schema.ts";

/** Sum of the figures that exist; null when none does. */
export function sum(values: readonly Figure[]): Figure {
  const known = values.filter((value): value is number => value !== null);
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0);
}

/** Mean of the figures that exist; null when none does. */
export function mean(values: readonly Figure[]): Figure {
  const known = values.filter((value): value is number => value !== null);
  return known.length === 0 ? null : known.reduce((total, value) => total + value, 0) / known.length;
}

/** Indices of the best figures, which differ by at most 1 %; none when there is no contest. */
export function best(values: readonly Figure[], better: "most" | "least"): number[] {
  const known = values.filter((value): value is number => value !== null);
  if (known.length < 2) return [];
  const top = better === "most" ? Math.max(...known) : Math.min(...known);
  const near = values.flatMap((value, index) => (value !== null && Math.abs(value - top) <= 0.01 * Math.abs(top) ? [index] : []));
  return near.length === known.length ? [] : near;
}

/** Equal spans of a series: `[first, behind the last]` of each, at most `most` of them. */
export function spans(length: number, most: number): [number, number][] {
  const parts = Math.min(length, Math.max(1, Math.floor(most)));
  return Array.from({ length: parts }, (_, part) => [
    Math.floor((part * length) / parts),
    Math.floor(((part + 1) * length) / parts),
  ]);
}

/** Mean of each span of a series. */
export const rebinned = (series: readonly Figure[], into: readonly [number, number][]): Figure[] =>
  into.map(([from, to]) => mean(series.slice(from, to)));

/** Begin and end of each interval in seconds; the last one may be shorter. */
export function intervals(timeline: Timeline): [number, number][] {
  const begins = timeline.begin_seconds;
  return begins.map((begin, index) => [begin, begins[index + 1] ?? Math.max(timeline.end_seconds, begin)]);
}

/** Point in the middle of each interval with the sum over drives; null where their system records no such series. */
export function totals(timeline: Timeline, figure: (drive: Timeline["drives"][number]) => readonly Figure[] | undefined): [number, Figure][] {
  const series = timeline.drives.map(figure);
  return intervals(timeline).map(([begin, end], index) => [(begin + end) / 2, sum(series.map((values) => values?.[index] ?? null))]);
}

/** Mean latency of all requests of each interval: that of each drive, weighted by its requests. */
export function latencyOverTime(timeline: Timeline): [number, Figure][] {
  return intervals(timeline).map(([begin, end], index) => {
    let [weighted, requests] = [0, 0];
    for (const drive of timeline.drives) {
      const [rate, us] = [drive.iops?.[index] ?? null, drive.latency_mean_us?.[index] ?? null];
      if (rate === null || us === null) continue;
      weighted += rate * us;
      requests += rate;
    }
    return [(begin + end) / 2, requests > 0 ? weighted / requests : null];
  });
}

/** "Nines" of a percentile: p90 is 1, p99 is 2, p99.9 is 3. */
export const nines = (percent: number): number => -Math.log10(1 - Math.min(percent, 99.9999) / 100);

/** Share of the requests in each of `perDecade` equal steps of the logarithm of latency: `[middle in µs, share]`. */
export function histogram(buckets: DesignDetail["latency"], perDecade: number): [number, number][] {
  const total = buckets.reduce((requests, bucket) => requests + bucket.requests, 0);
  const steps = new Map<number, number>();
  for (const bucket of buckets) {
    if (bucket.up_to_us === null || bucket.up_to_us <= 0 || bucket.requests === 0) continue;
    const step = Math.floor(Math.log10(bucket.up_to_us) * perDecade);
    steps.set(step, (steps.get(step) ?? 0) + bucket.requests);
  }
  if (steps.size === 0) return [];
  const known = [...steps.keys()];
  const [first, last] = [Math.min(...known) - 1, Math.max(...known) + 1];
  return Array.from({ length: last - first + 1 }, (_, index) => {
    const step = first + index;
    return [10 ** ((step + 0.5) / perDecade), (steps.get(step) ?? 0) / total];
  });
}

/** 1, 2, 5, 10, 20 … from below the least to above the greatest value, closer together within a decade; for logarithmic axes. */
export function decades(values: readonly Figure[]): number[] {
  const known = values.filter((value): value is number => value !== null && value > 0);
  if (known.length === 0) return [1, 10];
  const [least, greatest] = [Math.min(...known), Math.max(...known)];
  const factors = greatest <= 10 * least ? [1, 1.5, 2, 3, 5, 7] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(greatest)); power += 1) {
    for (const factor of factors) ticks.push(Number(`${factor}e${power}`));
  }
  const from = ticks.findLastIndex((tick) => tick <= least * 1.000001);
  const to = ticks.findIndex((tick) => tick >= greatest * 0.999999);
  // An axis needs two ends, also for one value.
  return ticks.slice(Math.max(0, from), Math.max(to < 0 ? ticks.length : to, from + 1) + 1);
}

/** A distance of marks that makes about four of them: one of `factors` times a power of `base`. */
export function roundStep(greatest: number, factors: readonly number[], base: number): number {
  if (!(greatest > 0)) return 1;
  const power = base ** Math.floor(Math.log(greatest / 4) / Math.log(base));
  return power * (factors.find((factor) => power * factor >= greatest / 4) ?? base);
}

/** Round marks from zero to `greatest`, three to six of them: 0, 20, 40, 60 and not 19.2. */
export function roundMarks(greatest: number): number[] {
  const step = roundStep(0.8 * greatest, [1, 2, 5], 10);
  const count = greatest > 0 ? Math.floor(greatest / step + 1e-9) : 0;
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}

/** What flows from lender to borrower on average; null stands for all drives that are not shown one by one. */
export interface Flow {
  lender: number | null;
  borrower: number | null;
  amount: number;
}

/** The drives of one side that lend or borrow most, at most `most`, in the order of the drives. */
export function strongest(lending: readonly Lending[], resource: LentResource, side: "lender" | "borrower", most: number): number[] {
  const total = new Map<number, number>();
  for (const one of lending) {
    if (one.resource === resource && (one.mean ?? 0) > 0) total.set(one[side], (total.get(one[side]) ?? 0) + (one.mean ?? 0));
  }
  const ranked = [...total].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([drive]) => drive);
  // One drive alone among "others" would better have its name.
  return ranked.slice(0, ranked.length > most ? most - 1 : most).sort((a, b) => a - b);
}

/** Mean flows of one resource among at most `most` lenders and borrowers, the weaker ones summed up. */
export function flows(lending: readonly Lending[], resource: LentResource, most: number): Flow[] {
  const [lenders, borrowers] = [strongest(lending, resource, "lender", most), strongest(lending, resource, "borrower", most)];
  const sums = new Map<string, Flow>();
  for (const one of lending) {
    if (one.resource !== resource || !((one.mean ?? 0) > 0)) continue;
    const lender = lenders.includes(one.lender) ? one.lender : null;
    const borrower = borrowers.includes(one.borrower) ? one.borrower : null;
    const flow = sums.get(`${lender}>${borrower}`) ?? { lender, borrower, amount: 0 };
    flow.amount += one.mean ?? 0;
    sums.set(`${lender}>${borrower}`, flow);
  }
  const place = (drive: number | null): number => drive ?? Infinity;
  return [...sums.values()].sort((a, b) => compare(place(a.lender), place(b.lender)) || compare(place(a.borrower), place(b.borrower)));
}

const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

/** What each lender gave over time, in the order of the drives; the weakest beyond `most` are one series. */
export function lent(lending: readonly Lending[], resource: LentResource, length: number, most: number): { lender: number | null; amount: number[] }[] {
  const shown = strongest(lending, resource, "lender", most);
  const series = new Map<number | null, number[]>(shown.map((lender) => [lender, Array<number>(length).fill(0)]));
  for (const one of lending) {
    if (one.resource !== resource || !((one.mean ?? 0) > 0)) continue;
    const lender = shown.includes(one.lender) ? one.lender : null;
    const amount = series.get(lender) ?? Array<number>(length).fill(0);
    for (let index = 0; index < length; index += 1) amount[index] = (amount[index] ?? 0) + (one.amount[index] ?? 0);
    series.set(lender, amount);
  }
  return [...series].map(([lender, amount]) => ({ lender, amount }));
}

/** Superblocks of all drives by how often they were erased, rising. */
export function eraseCounts(detail: DesignDetail): [number, number][] {
  const blocks = new Map<number, number>();
  for (const [erases, superblocks] of detail.flash.flatMap((flash) => flash.erase_counts)) {
    blocks.set(erases, (blocks.get(erases) ?? 0) + superblocks);
  }
  return [...blocks].sort(([a], [b]) => a - b);
}

/** Least, mean and greatest number of erases of one drive's superblocks. */
export function eraseSummary(counts: readonly [number, number][]): { least: Figure; mean: Figure; most: Figure } {
  const blocks = counts.reduce((total, [, superblocks]) => total + superblocks, 0);
  if (blocks === 0) return { least: null, mean: null, most: null };
  const erases = counts.map(([erased]) => erased);
  const weighted = counts.reduce((total, [erased, superblocks]) => total + erased * superblocks, 0);
  return { least: Math.min(...erases), mean: weighted / blocks, most: Math.max(...erases) };
}
