import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "../fixture/generate.ts";
import type { Lending, Timeline } from "../src/schema.ts";
import { best, decades, eraseSummary, flows, histogram, intervals, latencyOverTime, lent, nines, rebinned, roundMarks, roundStep, spans, totals } from "../src/shape.ts";

const near = (actual: number | null | undefined, expected: number): void => assert.ok(Math.abs((actual ?? Number.NaN) - expected) < 1e-9, `${actual} is not ${expected}`);

test("figures within one percent of the best share its mark", () => {
  assert.deepEqual(best([100, 99.5, 90], "most"), [0, 1]);
  assert.deepEqual(best([100, 99.5, 90], "least"), [2]);
});

test("there is no best among equals, alone, or without figures", () => {
  assert.deepEqual(best([5, 5.01], "most"), []);
  assert.deepEqual(best([5], "most"), []);
  assert.deepEqual(best([null, 5], "least"), []);
  assert.deepEqual(best([0, 0, 0], "least"), []);
  assert.deepEqual(best([0, 3, null], "least"), [0]);
});

test("spans cover a series exactly once", () => {
  for (const [length, most] of [[0, 5], [1, 5], [5, 5], [200, 60], [7, 3], [3, 0.2]] as const) {
    const cut = spans(length, most);
    assert.equal(cut.reduce((total, [from, to]) => total + to - from, 0), length);
    cut.forEach(([from], index) => assert.equal(from, cut[index - 1]?.[1] ?? 0));
    assert.ok(cut.length <= Math.max(1, most));
  }
});

test("a span without figures has none, others average what they have", () => {
  assert.deepEqual(rebinned([1, null, null, null], spans(4, 2)), [1, null]);
  assert.deepEqual(rebinned([1, 3], spans(2, 1)), [2]);
});

const TIMELINE: Timeline = {
  interval_seconds: 1,
  begin_seconds: [0, 1],
  end_seconds: 1.5,
  measured_from_seconds: 0,
  measured_to_seconds: 1.5,
  drives: [drive([10, 20], [100, null]), drive([30, 0], [200, null])],
};

function drive(iops: number[], latency_mean_us: (number | null)[]): Timeline["drives"][number] {
  const none = [0, 0];
  return { name: "d", read_bytes_per_s: none, write_bytes_per_s: none, iops, latency_mean_us, processor_utilization: none, lent_utilization: none, redirected_share: none, bus_utilization: none, die_utilization: none, mapping_miss_ratio: none, write_amplification: none };
}

test("the last interval ends where the run ends", () => {
  assert.deepEqual(intervals(TIMELINE), [[0, 1], [1, 1.5]]);
  assert.deepEqual(intervals({ ...TIMELINE, begin_seconds: [] }), []);
});

test("drives add up, and their latencies are weighted by requests", () => {
  assert.deepEqual(totals(TIMELINE, (one) => one.iops), [[0.5, 40], [1.25, 20]]);
  assert.deepEqual(latencyOverTime(TIMELINE), [[0.5, (10 * 100 + 30 * 200) / 40], [1.25, null]]);
});

test("each nine is as far from the next as from the one before", () => {
  near(nines(90), 1);
  near(nines(99.9), 3);
  assert.ok(Number.isFinite(nines(100)));
});

test("a histogram keeps every request", () => {
  const shares = histogram([{ up_to_us: 10, requests: 1 }, { up_to_us: 1000, requests: 3 }, { up_to_us: null, requests: 0 }], 10);
  near(shares.reduce((total, [, share]) => total + share, 0), 1);
  assert.deepEqual(histogram([], 10), []);
  assert.deepEqual(histogram([{ up_to_us: 5, requests: 0 }], 10), []);
});

test("logarithmic marks enclose the values", () => {
  assert.deepEqual(decades([160, 2110]), [100, 200, 500, 1000, 2000, 5000]);
  assert.deepEqual(decades([100, 100]), [100, 150]);
  assert.deepEqual(decades([160, 980]), [150, 200, 300, 500, 700, 1000]);
  assert.deepEqual(decades([null, 0]), [1, 10]);
  assert.deepEqual(decades([0.3, 0.9]), [0.3, 0.5, 0.7, 1]);
});

test("steps of an axis are round in their base", () => {
  assert.equal(roundStep(7.4, [1, 2, 5, 10], 10), 2);
  assert.equal(roundStep(1500, [1, 2], 2), 512);
  assert.equal(roundStep(0, [1], 10), 1);
});

const lending = (lender: number, borrower: number, mean: number): Lending => ({ resource: "processor", lender, borrower, amount: [mean, mean], mean });

test("weak lenders and borrowers are summed up, and nothing is lost", () => {
  const all = Array.from({ length: 20 }, (_, index) => lending(20 + index, index % 7, index + 1));
  const shown = flows(all, "processor", 5);
  near(shown.reduce((total, flow) => total + flow.amount, 0), 210);
  assert.equal(new Set(shown.map((flow) => flow.lender)).size, 5);
  assert.equal(new Set(shown.map((flow) => flow.borrower)).size, 5);
  const series = lent(all, "processor", 2, 5);
  assert.deepEqual(series.map((one) => one.lender), [36, 37, 38, 39, null]);
  near(series.reduce((total, one) => total + (one.amount[1] ?? 0), 0), 210);
});

test("few lenders keep their names, idle ones are left out", () => {
  assert.deepEqual(flows([lending(1, 0, 2), lending(2, 0, 0)], "processor", 5), [{ lender: 1, borrower: 0, amount: 2 }]);
  assert.deepEqual(flows([lending(1, 0, 2)], "memory", 5), []);
  assert.deepEqual(lent([lending(1, 0, 2)], "memory", 2, 5), []);
});

test("erases are averaged over superblocks", () => {
  assert.deepEqual(eraseSummary([[2, 3], [6, 1]]), { least: 2, mean: 3, most: 6 });
  assert.deepEqual(eraseSummary([]), { least: null, mean: null, most: null });
});

test("the parts of the fixture's splits add up to the latency", () => {
  for (const row of fixture().report.designs.flatMap((design) => design.latency_split)) {
    const parts = row.parts_us.reduce<number>((total, part) => total + (part ?? 0), 0);
    assert.ok(Math.abs(parts / (row.latency_us ?? 0) - 1) < 0.01);
  }
});

test("marks of time are round, whatever the run's length", () => {
  assert.deepEqual(roundMarks(0.0963), [0, 0.02, 0.04, 0.06, 0.08]);
  assert.deepEqual(roundMarks(0.122), [0, 0.05, 0.1]);
  assert.deepEqual(roundMarks(0.08), [0, 0.02, 0.04, 0.06, 0.08]);
  assert.deepEqual(roundMarks(0), [0]);
});
