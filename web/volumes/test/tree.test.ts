import assert from "node:assert/strict";
import test from "node:test";
import type { Leg, Volume } from "../src/schema.ts";
import { layout, short, width, words } from "../src/tree.ts";

const leg = (number: number, rate: number): Leg => ({ leg: number, name: `disk${number}`, state: "ready", why: null, queue_depth: 1, reads_per_s: rate, writes_per_s: 0, read_bytes_per_s: 4096 * rate, write_bytes_per_s: 0 });
const volume = (tree: Volume["tree"]): Volume => ({ name: "v", tree, queue_depth: 4, iops: 10, failed: 0, versions: null, rebuild: null });

test("a tree grows to the right, and a service stands in the middle of its legs", () => {
  const mirror = { service: "mirror", number: 1, below: [leg(0, 10), leg(1, 20)] };
  const tree = layout(volume({ service: "stripe", number: 0, below: [mirror, leg(2, 30)] }));
  assert.deepEqual([tree.columns, tree.rows, tree.nodes.length, tree.edges.length], [4, 3, 6, 5]);
  const of = (title: string) => tree.nodes.find((node) => node.title.endsWith(title));
  assert.deepEqual([of("mirror")?.row, of("mirror")?.column, of("stripe")?.row, of("disk2")?.row], [0.5, 2, 1.25, 2]);
  assert.equal(tree.nodes[0]?.row, 1.25);
  const top = tree.edges.at(-1);
  assert.deepEqual([top?.from, top?.load.reads, top?.load.depth], [0, 60, 3]);
});

test("a volume of one leg has one edge, and a lost leg says why", () => {
  const tree = layout(volume({ ...leg(0, 0), state: "lost", why: "it was detached" }));
  assert.deepEqual([tree.nodes.length, tree.edges.length, tree.rows], [2, 1, 1]);
  assert.deepEqual([tree.nodes[1]?.lost, tree.nodes[1]?.note], [true, "lost: it was detached"]);
});

test("edges have words with units, and are as wide as what they carry", () => {
  assert.deepEqual(words({ reads: 12345, writes: 7, bytes: 5e7, depth: 3 }), ["12.3 k reads/s, 7 writes/s", "50.0 MB/s, depth 3"]);
  assert.deepEqual([short(999), short(2.5e6), short(0.5)], ["999", "2.5 M", "0.5"]);
  const load = (bytes: number) => ({ reads: 1, writes: 1, bytes, depth: 0 });
  assert.ok(width(load(0), 100) < width(load(25), 100) && width(load(25), 100) < width(load(100), 100));
});
