// Numbers for readers: three significant digits, SI prefixes, a no-break space before the unit.

import type { Figure } from "./schema.ts";

/** Stands for a figure that does not exist. */
export const NONE = "–";
/** Before a unit. */
export const SPACE = "\u00a0";
const LARGE = ["", "k", "M", "G", "T", "P", "E"];
const SMALL = ["", "m", "µ", "n", "p"];

/** Three significant digits, never in scientific notation; zero is `0`. */
export function digits(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 100) return grouped(Math.round(value));
  if (size < 0.001) return trimmed(value.toPrecision(1), value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

/** Whole number with thousands apart. */
export function count(value: Figure): string {
  return value === null ? NONE : grouped(Math.round(value));
}

/** A value with the SI prefix that leaves one to three digits before the point. */
export function si(value: Figure, unit: string): string {
  if (value === null || !Number.isFinite(value)) return NONE;
  let scaled = value;
  let step = 0;
  while (Math.abs(scaled) >= 999.5 && step < LARGE.length - 1) {
    scaled /= 1000;
    step += 1;
  }
  if (step > 0 || scaled === 0) return `${digits(scaled)}${SPACE}${LARGE[step]}${unit}`;
  while (Math.abs(scaled) < 0.9995 && step < SMALL.length - 1) {
    scaled *= 1000;
    step += 1;
  }
  return `${digits(scaled)}${SPACE}${SMALL[step]}${unit}`;
}

export const bytesPerSecond = (value: Figure): string => si(value, "B/s");
export const bytes = (value: Figure): string => si(value, "B");
export const seconds = (value: Figure): string => si(value, "s");
export const joules = (value: Figure): string => si(value, "J");

/** A latency given in microseconds. */
export const latency = (us: Figure): string => (us === null ? NONE : si(us / 1e6, "s"));

/** Requests a second: `1.97 M/s`. */
export const perSecond = (value: Figure): string =>
  value === null || Math.abs(value) >= 0.9995 || value === 0 ? si(value, "/s") : `${digits(value)}${SPACE}/s`;

/** A share from 0 to 1 as percent, with one decimal. */
export function percent(share: Figure): string {
  if (share === null || !Number.isFinite(share)) return NONE;
  const value = share * 100;
  return `${value !== 0 && Math.abs(value) < 0.05 ? "< 0.1" : value.toFixed(1)}${SPACE}%`;
}

/** Dollars; cents below a hundred. */
export function dollars(value: Figure): string {
  if (value === null || !Number.isFinite(value)) return NONE;
  return `$${Math.abs(value) >= 100 ? grouped(Math.round(value)) : value.toFixed(2)}`;
}

/** A dimensionless ratio such as write amplification. */
export const ratio = (value: Figure): string => (value === null || !Number.isFinite(value) ? NONE : digits(value));

/** Core time: 0.5 is half of one core's time. */
export const cores = (value: Figure): string =>
  value === null || !Number.isFinite(value) ? NONE : `${digits(value)}${SPACE}${value === 1 ? "core" : "cores"}`;

/** Memory given in MiB. */
export function mebibytes(value: Figure): string {
  if (value === null || !Number.isFinite(value)) return NONE;
  return Math.abs(value) >= 1024 ? `${digits(value / 1024)}${SPACE}GiB` : `${digits(value)}${SPACE}MiB`;
}

/** A value as a mark of an axis: without needless zeros, and nothing but `0` for zero. */
export function mark(text: string): string {
  const short = text.replace(/(\.\d*?)0+(?!\d)/, "$1").replace(/\.(?!\d)/, "");
  return /^\D*0(?!\.)\D*$/.test(short) ? "0" : short;
}

/** `a`, `a and b`, `a, b and c`. */
export function listed(names: readonly string[]): string {
  if (names.length < 2) return names[0] ?? "";
  return `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}`;
}

function grouped(whole: number): string {
  return String(whole).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function trimmed(text: string, value: number): string {
  return text.includes("e") ? value.toFixed(12).replace(/0+$/, "") : text;
}
