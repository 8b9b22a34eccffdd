// Names and axes of the explorer. Pure functions, tested without a browser.

import { joules, dollars, latency, bytesPerSecond } from "./format.ts";
import type { Page } from "./page.ts";
import type { Explorer, ExplorerLoad, ExplorerPoint, Figure, Front } from "./schema.ts";

/** `1 core`, `3 cores`. */
export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** What a price is paid in, with the fronts in which it counts. */
export interface Price {
  name: string;
  /** Of a figure in a table and along the axis. */
  label: string;
  value: (point: ExplorerPoint) => Figure;
  text: (value: Figure) => string;
  both: Front;
  p99: Front;
  throughput: Front;
}

export const PRICES: Price[] = [
  { name: "Cost", label: "price of a drive", value: (point) => point.drive_dollars, text: dollars, both: "cost_p99_throughput", p99: "cost_p99", throughput: "cost_throughput" },
  { name: "Energy", label: "energy per GB moved", value: (point) => point.energy_joules_per_gb, text: joules, both: "energy_p99_throughput", p99: "energy_p99", throughput: "energy_throughput" },
];

/** What a price buys. */
export interface Service {
  key: "p99" | "throughput";
  name: string;
  /** In the middle of a sentence. */
  label: string;
  value: (point: ExplorerPoint) => Figure;
  text: (value: Figure) => string;
  /** The value at which a run still counts as serving like one with `value`. */
  limit: (value: number, slack: number) => number;
}

export const SERVICES: Service[] = [
  { key: "p99", name: "Latency, p99", label: "p99", value: (point) => point.latency_p99_us, text: latency, limit: (value, slack) => value * (1 + slack) },
  { key: "throughput", name: "Throughput", label: "throughput", value: (point) => point.throughput_bytes_per_s, text: bytesPerSecond, limit: (value, slack) => value * (1 - slack) },
];

/** A share of the map, in whole percent. */
export const wholePercent = (share: number): string => `${Math.round(share * 100)}\u00a0%`;

/** A load in words, such as `6 of 12 drives busy`. */
export function loadName(page: Page, load: ExplorerLoad): string {
  const drives = page.document.report.designs[load.points[0] ?? 0]?.drives.length ?? 0;
  const words = load.settings.map((setting) => {
    const [key, value] = split(setting);
    return key === "jbof.busy_drives" ? `${value} of ${drives} drives busy` : `${key}=${value}`;
  });
  return words.join(", ") || "one load";
}

/** Names of designs, once each, and how many runs there are. */
export function sweptDesigns({ points }: Explorer): string {
  const names = [...new Set(points.map((point) => point.design))];
  return `${names.join(", ")}; ${points.length} runs of a sweep`;
}

/**
 * Short names: `xbof 3c 50% 6b` has 3 cores, half of the map in its own memory and 6 busy drives; what never changes
 * is left out. Full names where two short ones would be alike.
 */
export function runNames({ points }: Explorer): string[] {
  const names = points.map((point) => {
    const own = points.filter((other) => other.design === point.design);
    const varies = (part: (point: ExplorerPoint) => unknown): boolean => new Set(own.map(part)).size > 1;
    const load = point.load.map((setting) => {
      const [key, value] = split(setting);
      return key === "jbof.busy_drives" ? `${value}b` : `${key.slice(key.lastIndexOf(".") + 1)}=${value}`;
    });
    const equipment = [...(varies((one) => one.cores) ? [`${point.cores}c`] : []), ...(varies((one) => one.memory_share) ? [`${Math.round(point.memory_share * 100)}%`] : [])];
    return [point.design, ...equipment, ...load].join(" ");
  });
  return new Set(names).size === names.length ? names : points.map((point) => point.name);
}

/** Members of a front, from the least price on, as `[price, service]`: between two of them nothing is better. */
export function frontLine(points: readonly ExplorerPoint[], price: Price, service: Service): [number, number][] {
  const members = points.filter((point) => point.fronts.includes(price[service.key]));
  const pairs = members.flatMap((point): [number, number][] => {
    const [paid, got] = [price.value(point), service.value(point)];
    return paid === null || got === null ? [] : [[paid, got]];
  });
  return pairs.sort((a, b) => a[0] - b[0]);
}

function split(setting: string): [string, string] {
  const at = setting.indexOf("=");
  return at < 0 ? [setting, ""] : [setting.slice(0, at), setting.slice(at + 1)];
}
