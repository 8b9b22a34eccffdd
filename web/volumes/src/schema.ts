// The status of volumes, as the server writes it every half second.

export interface Leg {
  leg: number;
  name: string;
  state: "ready" | "lost";
  /** Why it is lost. */
  why: string | null;
  /** Orders under way. */
  queue_depth: number;
  reads_per_s: number;
  writes_per_s: number;
  read_bytes_per_s: number;
  write_bytes_per_s: number;
}

export interface Service {
  service: string;
  number: number;
  below: Part[];
}

export type Part = Leg | Service;

export interface Volume {
  name: string;
  tree: Part;
  queue_depth: number;
  iops: number;
  failed: number;
  versions: number[] | null;
  rebuild: { left_blocks: number; share: number } | null;
}

export interface Status {
  interval_seconds: number;
  volumes: Volume[];
}

export const isLeg = (part: Part): part is Leg => "leg" in part;
