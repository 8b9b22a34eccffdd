// The shape of a page of charts, as `crates/pure/report/src/charts.rs` writes it. A test there compares the keys.

import type { Figure } from "../schema.ts";

/** Lives of drives and studies of them: what is no run of designs beside each other. */
export interface ChartPage {
  /** What kind of report it is. */
  kind: string;
  title: string;
  facts: [name: string, value: string][];
  complete: boolean;
  sections: ChartSection[];
  version: string;
}

export interface ChartSection {
  id: string;
  title: string;
  finding: string;
  /** What the panels differ in. */
  choice: string;
  /** One at a time on the screen, all in print. */
  panels: ChartPanel[];
  tables: ChartTable[];
}

export interface ChartPanel {
  name: string;
  charts: Chart[];
}

/** `lines`; `curve`, lines with a mark at every point; `steps`, histograms in an order; `bars`, by category. */
export type ChartForm = "lines" | "curve" | "steps" | "bars";

export interface Chart {
  caption: string;
  form: ChartForm;
  x: ChartAxis;
  y: ChartAxis;
  /** Names along x; only bars have any. */
  categories: string[];
  series: ChartSeries[];
}

export interface ChartAxis {
  name: string;
  /** `B` and `share` take prefixes and percent; anything else stands behind the number. */
  unit: string;
  from_zero: boolean;
}

export interface ChartSeries {
  name: string;
  /** Of bars, x is the place of the category. */
  points: [x: number, y: Figure][];
}

export interface ChartTable {
  caption: string;
  head: string[];
  rows: string[][];
}
