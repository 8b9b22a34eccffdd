// A snapshot as crates/pure/report/src/live.rs writes it; a test there compares every key with the fixture.

import type { Figure, LatencySummary, LentResource } from "../../report/src/schema.ts";

export interface Snapshot {
  number: number;
  scenario: string;
  time_seconds: number;
  wall_seconds: number;
  interval_seconds: number;
  /** Simulated seconds a wall second; null when the run is not paced. */
  pace: Figure;
  harvest: boolean;
  segment_mib: Figure;
  drives: DriveSnapshot[];
  lending: Loan[];
  lateness_us: { p50: Figure; p99: Figure; max: Figure };
  noise_us: Figure;
  connections: number;
  events: LiveEvent[];
  points: Points;
}

export interface DriveSnapshot {
  name: string;
  nqn: string;
  state: DriveState;
  read_bytes_per_s: Figure;
  write_bytes_per_s: Figure;
  iops: Figure;
  latency_us: LatencySummary;
  processor_utilization: Figure;
  lent_utilization: Figure;
  die_utilization: Figure;
  bus_utilization: Figure;
  dram_utilization: Figure;
  mapping_miss_ratio: Figure;
  redirected_share: Figure;
  wear_percent: Figure;
  spare_percent: Figure;
  /** In the whole life of the drive. */
  media_errors: number;
  queue_depth: number;
  totals: { reads: number; writes: number; read_bytes: number; write_bytes: number; latency_seconds: Figure };
}

export type DriveState = "ready" | "away" | "off" | "unlinked" | "resetting";

/** Cores, or MiB of mapping memory, that one drive lends another. */
export interface Loan {
  resource: LentResource;
  lender: number;
  borrower: number;
  amount: Figure;
}

export interface LiveEvent {
  number: number;
  time_seconds: number;
  kind: EventKind;
  drive: string | null;
  text: string;
}

export type EventKind = "lost" | "back" | "lending" | "connection" | "setting";

export interface Points {
  begin_seconds: number;
  step_seconds: number;
  drives: DrivePoints[];
}

export interface DrivePoints {
  read_bytes_per_s: Figure[];
  write_bytes_per_s: Figure[];
  latency_mean_us: Figure[];
  processor_utilization: Figure[];
  lent_utilization: Figure[];
}

/** What the page may ask for; the rest of the commands is for scripts. */
export type Command =
  | { command: "pull" | "insert"; drive: string }
  | { command: "power"; on: boolean }
  | { command: "harvest"; on: boolean };
