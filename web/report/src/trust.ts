// What a reader must know before believing a figure. Pure functions, tested without a browser.

import type { RunReport } from "./schema.ts";

/** Why runs are missing: each that failed with its error, or that the program was stopped; null where all were finished. */
export function unfinished({ complete, failed = [], interrupted }: RunReport): { title: string; text: string; items: [string, string][] } | null {
  if (complete) return null;
  const items = failed.map(({ run, error }): [string, string] => [run, error]);
  const runs = failed.length === 1 ? "a run failed" : `${failed.length} runs failed`;
  if (interrupted) return { title: `The run was interrupted${items.length > 0 ? `, and ${runs}` : ""}`, text: "Only the designs below were finished; the others are missing.", items };
  if (items.length > 0) return { title: `${runs[0]?.toUpperCase()}${runs.slice(1)}`, text: failed.length === 1 ? "Its figures are missing." : "Their figures are missing.", items };
  return { title: "Not every run was finished", text: "Only the designs below were finished; the others failed or were interrupted.", items };
}

/** Broken laws with their runs: those of the designs, also of the runs of a large sweep that are not shown one by one, and of other seeds. */
export function brokenLaws({ designs, seed, seeds }: RunReport): [string, string][] {
  const named = (name: string, laws: readonly string[]): [string, string][] => (laws.length > 0 ? laws : ["a law does not hold"]).map((law) => [name, law]);
  const own = designs.filter(({ laws }) => !laws.hold || laws.broken.length > 0).flatMap(({ name, laws }) => named(name, laws.broken));
  const others = (seeds?.broken ?? []).filter((run) => run.seed !== seed).flatMap((run) => named(`${run.name} under seed ${run.seed}`, run.laws));
  return [...own, ...others];
}
