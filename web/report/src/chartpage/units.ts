// Values of a chart with their units.

import { shortened } from "../chart.ts";
import { NONE, SPACE, bytes, digits, percent } from "../format.ts";
import type { Figure } from "../schema.ts";
import type { ChartAxis } from "./schema.ts";

/** Longer units would leave no room for a chart; all that are known are shorter. */
const UNIT_MAX = 12;

/** A value as its axis writes it. */
export function written({ unit }: ChartAxis): (value: Figure) => string {
  if (unit === "B") return bytes;
  if (unit === "share") return percent;
  return (value) => (value === null || !Number.isFinite(value) ? NONE : `${signed(value)}${unit === "" ? "" : SPACE}${shortened(unit, UNIT_MAX)}`);
}

const signed = (value: number): string => (value < 0 ? `−${digits(-value)}` : digits(value));
