// What every section needs: the document, and a colour for each design.

import { designHues } from "./colours.ts";
import type { Hue } from "./colours.ts";
import type { Cause, DesignDetail, DesignResult, Explorer, ReportDocument } from "./schema.ts";
import { runNames } from "./explorer.ts";

/** A design with its details and its place in the report. */
export interface Design {
  index: number;
  name: string;
  hue: Hue;
  result: DesignResult;
  detail: DesignDetail;
}

export interface Page {
  document: ReportDocument;
  /** Designs to show one by one: of a large sweep not all. */
  designs: Design[];
  causes: Cause[];
  explorer: Explorer | null;
  /** Whether all shown designs serve the same load. */
  comparable: boolean;
}

/** A name longer than this does not fit beside a bar. */
const NAME_MAX = 20;

const EMPTY: Omit<DesignDetail, "name"> = {
  latency: [],
  percentiles: [],
  timeline: { interval_seconds: 0, begin_seconds: [], end_seconds: 0, measured_from_seconds: 0, measured_to_seconds: 0, drives: [] },
  lending: [],
  flash: [],
  energy_joules: { cores: 0, dram: 0, link: 0, flash: 0 },
};

/** Figures that sentences and charts go by, for systems that do not report them. */
const UNKNOWN = {
  throughput_bytes_per_s: null,
  iops: null,
  latency_us: { mean: null, p50: null, p99: null, p999: null, p9999: null, max: null },
  write_amplification: null,
  energy_joules_per_gb: null,
  bom_dollars: null,
  throughput_bytes_per_s_per_dollar: null,
  drives: [],
};

/** Results and details belong together by position; a design without details gets empty ones. */
export function page(document: ReportDocument): Page {
  const explorer = document.report.explorer ?? null;
  const all = document.report.designs;
  const places = explorer ? explorer.shown.filter((place) => all[place]) : all.map((_, place) => place);
  const kinds = places.map((place) => explorer?.points[place]?.design ?? all[place]?.name ?? "");
  const long = places.some((place) => (all[place]?.name.length ?? 0) > NAME_MAX);
  const short = explorer && long ? runNames(explorer) : [];
  const hues = designHues(kinds);
  const designs = places.flatMap((place, index) => {
    const known = all[place];
    if (!known) return [];
    const result = { ...UNKNOWN, ...known, latency_us: { ...UNKNOWN.latency_us, ...known.latency_us } };
    const found = document.details[place] ?? { ...EMPTY, name: result.name };
    const detail = { ...found, timeline: { ...found.timeline, drives: found.timeline.drives ?? [] } };
    return [{ index, name: short[place] ?? result.name, hue: hues[index] ?? { light: "#666666", dark: "#b4b4b4" }, result, detail }];
  });
  const loads = new Set(places.map((place) => explorer?.points[place]?.load.join()));
  return { document, designs, causes: document.causes, explorer, comparable: loads.size < 2 };
}

/** How many of the runs are shown one by one; empty where all are. */
export const notShown = ({ designs, document: { report } }: Page): string =>
  designs.length < report.designs.length ? `${designs.length} of ${report.designs.length} runs are shown one by one.` : "";

/** Drives of a design by index, named; an index without a drive is named by its number. */
export const driveName = (design: Design, index: number): string =>
  design.result.drives[index]?.name ?? design.detail.timeline.drives[index]?.name ?? `drive ${index}`;
