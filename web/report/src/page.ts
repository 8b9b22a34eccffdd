// What every section needs: the document, and a colour for each design.

import { designHues } from "./colours.ts";
import type { Hue } from "./colours.ts";
import type { Cause, DesignDetail, DesignResult, ReportDocument } from "./schema.ts";

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
  designs: Design[];
  causes: Cause[];
}

const EMPTY: Omit<DesignDetail, "name"> = {
  latency: [],
  percentiles: [],
  timeline: { interval_seconds: 0, begin_seconds: [], end_seconds: 0, measured_from_seconds: 0, drives: [] },
  lending: [],
  flash: [],
  energy_joules: { cores: 0, dram: 0, link: 0, flash: 0 },
};

/** Results and details belong together by position; a design without details gets empty ones. */
export function page(document: ReportDocument): Page {
  const hues = designHues(document.report.designs.map((design) => design.name));
  const designs = document.report.designs.map((result, index) => ({
    index,
    name: result.name,
    hue: hues[index] ?? { light: "#666666", dark: "#b4b4b4" },
    result,
    detail: document.details[index] ?? { ...EMPTY, name: result.name },
  }));
  return { document, designs, causes: document.causes };
}

/** Drives of a design by index, named; an index without a drive is named by its number. */
export const driveName = (design: Design, index: number): string =>
  design.result.drives[index]?.name ?? design.detail.timeline.drives[index]?.name ?? `drive ${index}`;
