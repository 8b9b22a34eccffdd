// Figures by their declarations: where they are in a document, and how they are written. Pure functions, tested without a browser.

import { bytes, bytesPerSecond, count, dollars, joules, latency, perSecond, percent, ratio, seconds, si } from "./format.ts";
import type { ComponentKind, Figure, Figures, Metric, ReportDocument, Timeline } from "./schema.ts";

const TEXTS: Record<string, (value: Figure) => string> = {
  count,
  bytes,
  bytes_per_second: bytesPerSecond,
  per_second: perSecond,
  microseconds: latency,
  seconds,
  share: percent,
  ratio,
  joules,
  dollars,
  bytes_per_second_per_dollar: (value) => (value === null ? bytesPerSecond(value) : `${bytesPerSecond(value)}/$`),
};

/** A figure as readers see it, by its unit. */
export const text = (metric: Metric, value: Figure): string => {
  const known = Object.hasOwn(TEXTS, metric.unit) ? TEXTS[metric.unit] : undefined;
  return known ? known(value) : si(value, metric.unit);
};

/** The figure of a run or a component; null where there is none. */
export function figure(of: Figures, key: string): Figure {
  const found = key.split(".").reduce<unknown>((value, name) => (typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Figures)[name] : null), of);
  return typeof found === "number" ? found : null;
}

/** The metrics of the table of runs, or of the components of a kind. */
export const shownMetrics = ({ metrics }: ReportDocument, component: string | null): Metric[] =>
  metrics.filter((metric) => metric.component === component && metric.shown && !metric.series);

/** The metric of a run called `key`. */
export const runMetric = ({ metrics }: ReportDocument, key: string): Metric | undefined =>
  metrics.find((metric) => metric.component === null && metric.key === key);

/** Something of each component of a kind, of a run or of a timeline. */
export const componentsOf = (of: Figures, kind: ComponentKind): ({ name: string } & Figures)[] =>
  Array.isArray(of[kind.plural]) ? (of[kind.plural] as ({ name: string } & Figures)[]) : [];

/** A share of components over time: what a map of dark and light cells can show. */
export interface ShareSeries {
  name: string;
  /** Components with their series. */
  rows: (timeline: Timeline) => { name: string; values: readonly Figure[] }[];
  /** What a cell without a figure means. */
  none: string;
}

/** All shares over time; components of several kinds are told apart by their kind. */
export function shareSeries({ metrics, components }: ReportDocument): ShareSeries[] {
  const found = components.flatMap((kind) => metrics.filter((metric) => metric.component === kind.id && metric.series && metric.unit === "share").map((metric) => ({ kind, metric })));
  const several = new Set(found.map(({ kind }) => kind.id)).size > 1;
  return found.map(({ kind, metric }) => ({
    name: several ? `${kind.title}: ${metric.title}` : metric.title,
    rows: (timeline) => componentsOf(timeline, kind).map((one) => ({ name: one.name, values: (one[metric.key] ?? []) as Figure[] })),
    none: metric.absent,
  }));
}

/** Whether the system of a report declares one of these figures of a run; a system without them has no section about them. */
export const declares = (document: ReportDocument, ...keys: string[]): boolean =>
  document.metrics.some((metric) => metric.component === null && keys.includes(metric.key));
