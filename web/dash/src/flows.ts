// From loans to bands between drives: where each begins and ends, and how they move from one snapshot to the next.

import type { LentResource } from "../../report/src/schema.ts";
import type { Snapshot } from "./schema.ts";

/** A band from a lender to a borrower. Places are in rows: row 2 reaches from 1.5 to 2.5. */
export interface Band {
  lender: number;
  borrower: number;
  amount: number;
  /** Upper and lower edge where it begins. */
  from: [number, number];
  /** The same where it ends. */
  to: [number, number];
}

/** Part of a row that a band of the greatest amount fills. */
const FULL = 0.86;
/** A band of less than this part of the greatest amount has ended. */
const GONE = 0.002;

export const key = (lender: number, borrower: number): string => `${lender}>${borrower}`;

/** Amounts lent by lender and borrower. */
export type Amounts = Map<string, { lender: number; borrower: number; amount: number }>;

export function amounts(snapshot: Snapshot, resource: LentResource): Amounts {
  const made: Amounts = new Map();
  for (const { resource: kind, lender, borrower, amount } of snapshot.lending) {
    if (kind === resource && amount !== null && amount > 0) made.set(key(lender, borrower), { lender, borrower, amount });
  }
  return made;
}

/** Sums by drive on one side. */
export function sums(of: Amounts, side: "lender" | "borrower"): Map<number, number> {
  const made = new Map<number, number>();
  for (const one of of.values()) made.set(one[side], (made.get(one[side]) ?? 0) + one.amount);
  return made;
}

/** The most that one drive lends or borrows. */
export const greatest = (of: Amounts): number => Math.max(0, ...sums(of, "lender").values(), ...sums(of, "borrower").values());

/** Moves what is shown a part of the way to what is; true while they differ visibly. */
export function approach(shown: Amounts, target: Amounts, part: number, full: number): boolean {
  let moving = false;
  for (const [place, { lender, borrower }] of target) if (!shown.has(place)) shown.set(place, { lender, borrower, amount: 0 });
  for (const [place, one] of shown) {
    const goal = target.get(place)?.amount ?? 0;
    one.amount += (goal - one.amount) * part;
    if (Math.abs(goal - one.amount) > GONE * full) moving = true;
    else if (goal === 0) shown.delete(place);
    else one.amount = goal;
  }
  return moving;
}

/** Bands of the amounts, stacked in each row in the order of the other side, in the middle of the row. */
export function bands(of: Amounts, full: number): Band[] {
  const scale = FULL / (full > 0 ? full : 1);
  const made = [...of.values()].map((one): Band => ({ ...one, from: [0, 0], to: [0, 0] }));
  const stack = (side: "lender" | "borrower", other: "lender" | "borrower", end: "from" | "to"): void => {
    const total = sums(of, side);
    const next = new Map([...total].map(([row, sum]) => [row, row - (sum * scale) / 2]));
    for (const band of [...made].sort((a, b) => a[other] - b[other])) {
      const top = next.get(band[side]) ?? band[side];
      band[end] = [top, top + band.amount * scale];
      next.set(band[side], top + band.amount * scale);
    }
  };
  stack("lender", "borrower", "from");
  stack("borrower", "lender", "to");
  return made;
}
