// Where the parts of a tree stand, and what their edges carry.

import { isLeg, type Part, type Volume } from "./schema.ts";

/** Orders and bytes of all legs below a part, a second, and orders under way. */
export interface Load {
  reads: number;
  writes: number;
  bytes: number;
  depth: number;
}

export interface Node {
  /** Column from the left, and row from the top, which may be between two. */
  column: number;
  row: number;
  title: string;
  note: string;
  lost: boolean;
}

export interface Edge {
  from: number;
  to: number;
  load: Load;
}

export interface Tree {
  nodes: Node[];
  edges: Edge[];
  columns: number;
  rows: number;
}

/** The tree of a volume, from the volume on the left to its legs on the right. */
export function layout(volume: Volume): Tree {
  const nodes: Node[] = [{ column: 0, row: 0, title: volume.name, note: `${volume.queue_depth} under way`, lost: false }];
  const edges: Edge[] = [];
  let rows = 0;
  let columns = 1;
  const place = (part: Part, column: number): { number: number; load: Load } => {
    columns = Math.max(columns, column + 1);
    const number = nodes.length;
    if (isLeg(part)) {
      const lost = part.state === "lost";
      nodes.push({ column, row: rows++, title: `${part.leg} ${part.name}`, note: lost ? `lost: ${part.why ?? ""}` : "ready", lost });
      return { number, load: { reads: part.reads_per_s, writes: part.writes_per_s, bytes: part.read_bytes_per_s + part.write_bytes_per_s, depth: part.queue_depth } };
    }
    const node: Node = { column, row: 0, title: part.service, note: `s${part.number}`, lost: false };
    nodes.push(node);
    const load: Load = { reads: 0, writes: 0, bytes: 0, depth: 0 };
    const below = part.below.map((one) => place(one, column + 1));
    for (const one of below) {
      edges.push({ from: number, to: one.number, load: one.load });
      for (const key of ["reads", "writes", "bytes", "depth"] as const) load[key] += one.load[key];
    }
    const places = below.map((one) => nodes[one.number]?.row ?? 0);
    node.row = places.length > 0 ? ((places[0] ?? 0) + (places[places.length - 1] ?? 0)) / 2 : rows++;
    return { number, load };
  };
  const top = place(volume.tree, 1);
  edges.push({ from: 0, to: top.number, load: top.load });
  const first = nodes[0];
  if (first) first.row = nodes[top.number]?.row ?? 0;
  return { nodes, edges, columns, rows };
}

/** A number of three figures, with the unit's prefix. */
export function short(value: number): string {
  const [scaled, prefix] = value >= 1e6 ? [value / 1e6, " M"] : value >= 1e4 ? [value / 1e3, " k"] : [value, ""];
  return scaled >= 100 || (prefix === "" && Number.isInteger(scaled)) ? `${scaled.toFixed(0)}${prefix}` : `${scaled.toFixed(1)}${prefix}`;
}

/** What stands on an edge: orders and bytes a second, and the depth of the queue. */
export function words(load: Load): [string, string] {
  return [`${short(load.reads)} reads/s, ${short(load.writes)} writes/s`, `${(load.bytes / 1e6).toFixed(1)} MB/s, depth ${load.depth}`];
}

/** Width of an edge, of which the widest has `most` bytes a second. */
export function width(load: Load, most: number): number {
  return load.bytes > 0 && most > 0 ? 1.5 + 8.5 * Math.sqrt(load.bytes / most) : 1;
}
