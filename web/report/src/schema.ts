// The shape of a report, as `crates/pure/report` writes it (`detail.rs`, `schema.rs`). A test there compares the keys.
// Figures are declared by the document itself (`metrics`); named here are those that sentences and charts go by.

/** A number that the writer could not always compute: JSON has no infinity and no "not a number", so they arrive as null. */
export type Figure = number | null;

export interface ReportDocument {
  report: RunReport;
  /** One entry a design, in the order of `report.designs`. */
  details: DesignDetail[];
  /** The meaning of the columns of every split. */
  causes: Cause[];
  /** The meaning of every figure; those that are shown first, in their order. */
  metrics: Metric[];
  /** Kinds of the components. */
  components: ComponentKind[];
  /** TOML with a provenance mark on every number. */
  resolved: string;
  version: string;
}

/** A figure that the system of the runs declares (`figure.rs`). */
export interface Metric {
  /** Its place in a run, a component or a timeline; one dot leads into an object. */
  key: string;
  title: string;
  /** One of those of `metrics.ts`, or a symbol that takes prefixes. */
  unit: string;
  better: "more" | "less" | "neither";
  needs: Needs;
  about: string;
  /** What it means where the figure is missing. */
  absent: string;
  /** Kind of the components that have it; null for the run as a whole. */
  component: string | null;
  /** Whether it is a series over time. */
  series: boolean;
  /** Whether it stands in the table of runs, or of the components of its kind. */
  shown: boolean;
}

/** What a figure needs before runs may be ranked by it. */
export type Needs = "nothing" | "equal_load" | "work_in_drives";

export interface ComponentKind {
  id: string;
  /** Where the components are in a run and in a timeline. */
  plural: string;
  title: string;
}

export interface Cause {
  key: string;
  label: string;
  note: string;
}

export interface RunReport {
  scenario: string;
  /** What the scenario is about. */
  title: string;
  /** The command line that repeats the run. */
  command: string;
  /** What each design is. */
  about: { name: string; text: string }[];
  /** Whether requests are issued as others complete, so that a slower design is asked for less. */
  closed_loop: boolean;
  /** What to know before a figure of the window is taken for that of a steady state. */
  notes: string[];
  seed: number;
  simulated_seconds: Figure;
  wall_seconds: Figure;
  workload: string;
  scaling: string[];
  complete: boolean;
  /** Runs that failed; only where some did. */
  failed?: { run: string; error: string }[];
  /** Whether the program was stopped before all runs had ended; only where it was. */
  interrupted?: boolean;
  designs: DesignResult[];
  /** Only in the report of a sweep with several points. */
  explorer?: Explorer;
  /** Means over several seeds; everything else is of the first one. */
  seeds?: Seeds;
}

/** Figures over several seeds (`seeds.rs`). */
export interface Seeds {
  seeds: number[];
  designs: { name: string; figures: SeededFigure[] }[];
  /** Each design against the best one, for each figure that ranks, over the `seeds` seeds that all compared designs finished. */
  differences: { key: string; best: string; design: string; percent: number; half_width_percent: number; is_there: boolean; seeds: number }[];
  /** Runs that broke a law, of any seed: their figures are in no mean. Only where some did. */
  broken?: { name: string; seed: number; laws: string[] }[];
}

export interface SeededFigure {
  key: string;
  mean: Figure;
  /** Half of a 95 % confidence interval. */
  half_width: Figure;
  values: Figure[];
}

/** Cost, energy and service of the runs of a sweep (`explorer/mod.rs`). */
export interface Explorer {
  reference: string;
  within_percent: number;
  /** One entry a run, in the order of `designs`. */
  points: ExplorerPoint[];
  loads: ExplorerLoad[];
  /** Whether runs of the same load differ in price, so that there is something to weigh. */
  is_a_choice: boolean;
  /** Runs that the page shows one by one, as places among the designs; the others have no details. */
  shown: number[];
}

export interface ExplorerPoint {
  name: string;
  design: string;
  /** Whether host cores, which are in neither price nor energy, do part of the work: on no front. */
  computes_on_host: boolean;
  /** What is asked of it, as `section.key=value`. */
  load: string[];
  cores: number;
  memory_share: number;
  lenders_per_busy: number;
  drive_dollars: Figure;
  jbof_dollars: Figure;
  energy_joules: Figure;
  energy_joules_per_gb: Figure;
  throughput_bytes_per_s: Figure;
  latency_p99_us: Figure;
  fronts: Front[];
}

export type Front = "cost_p99_throughput" | "cost_p99" | "cost_throughput" | "energy_p99_throughput" | "energy_p99" | "energy_throughput";

export interface ExplorerLoad {
  settings: string[];
  /** Places among the designs. */
  points: number[];
  dominated: number;
  reference: number | null;
  cheapest: number | null;
}

export interface LatencySummary {
  mean: Figure;
  p50: Figure;
  p99: Figure;
  p999: Figure;
  p9999: Figure;
  max: Figure;
}

export interface SplitRow {
  /** `mean`, `near p50`, `near p99` or `near p99.9`. */
  at: string;
  requests: number;
  latency_us: Figure;
  parts_us: Figure[];
}

export interface DesignResult extends Figures {
  name: string;
  /** The design without its point of a sweep. */
  design: string;
  /** Whether host cores do what drives do in other designs: their energy and price are in no figure here. */
  computes_on_host: boolean;
  /** Where in a sweep it was run, as `section.key=value`. */
  point: string[];
  latency_split: SplitRow[];
  /** Both halves of the measured window; empty where it is too short. */
  halves: { throughput_bytes_per_s: Figure; write_amplification: Figure }[];
  laws: { hold: boolean; broken: string[] };
  /** Figures that rank runs; null where the system does not report them. */
  throughput_bytes_per_s: Figure;
  iops: Figure;
  latency_us: LatencySummary;
  write_amplification: Figure;
  energy_joules_per_gb: Figure;
  bom_dollars: Figure;
  throughput_bytes_per_s_per_dollar: Figure;
  drives: DriveResult[];
}

/** Declared figures by their keys, and components by the plurals of their kinds. */
export interface Figures {
  [name: string]: unknown;
}

export interface DriveResult extends Figures {
  name: string;
  processor_utilization: Figure;
  write_amplification: Figure;
}

export interface DesignDetail {
  name: string;
  latency: { up_to_us: Figure; requests: number }[];
  percentiles: { percent: number; latency_us: Figure }[];
  timeline: Timeline;
  lending: Lending[];
  flash: FlashDetail[];
  energy_joules: EnergyParts;
}

/** Equal intervals from the start of the run; every array has the length of `begin_seconds`. */
export interface Timeline extends Figures {
  interval_seconds: number;
  begin_seconds: number[];
  end_seconds: number;
  measured_from_seconds: number;
  /** When streams stopped issuing. */
  measured_to_seconds: number;
  drives: DriveTimeline[];
}

export interface DriveTimeline extends Figures {
  name: string;
  read_bytes_per_s: Figure[];
  write_bytes_per_s: Figure[];
  iops: Figure[];
  latency_mean_us: Figure[];
}

export type LentResource = "processor" | "memory";

export interface Lending {
  resource: LentResource;
  /** Indices among the drives. */
  lender: number;
  borrower: number;
  /** Mean amount in each interval: cores, or MiB. */
  amount: Figure[];
  mean: Figure;
}

export interface FlashDetail {
  page_reads: number;
  page_programs: number;
  block_erases: number;
  read_retries: number;
  /** `[erases, superblocks with so many]`, rising. */
  erase_counts: [number, number][];
}

export interface EnergyParts {
  cores: Figure;
  dram: Figure;
  link: Figure;
  flash: Figure;
}
