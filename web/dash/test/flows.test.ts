import assert from "node:assert/strict";
import { test } from "node:test";
import { Jbof } from "../fixture/jbof.ts";
import { amounts, approach, bands, greatest, sums } from "../src/flows.ts";
import type { Amounts } from "../src/flows.ts";

function lent(): Amounts {
  const jbof = new Jbof();
  for (let turn = 0; turn < 60; turn += 1) jbof.next();
  return amounts(jbof.next(), "processor");
}

test("bands are as wide as what is lent, at both ends", () => {
  const of = lent();
  assert.ok(of.size >= 5);
  const full = greatest(of);
  for (const band of bands(of, full)) {
    for (const [top, bottom] of [band.from, band.to]) assert.ok(Math.abs(bottom - top - (0.86 * band.amount) / full) < 1e-9);
  }
});

test("bands of a row lie beside each other inside it", () => {
  const of = lent();
  const drawn = bands(of, greatest(of));
  for (const [side, end] of [["lender", "from"], ["borrower", "to"]] as const) {
    for (const row of sums(of, side).keys()) {
      const edges = drawn.filter((band) => band[side] === row).map((band) => band[end]).sort((a, b) => a[0] - b[0]);
      edges.forEach(([top, bottom], index) => {
        assert.ok(top >= row - 0.5 && bottom <= row + 0.5);
        assert.ok(top >= (edges[index - 1]?.[1] ?? -1) - 1e-9);
      });
    }
  }
});

test("what is shown arrives at what is, and what has ended vanishes", () => {
  const [shown, target]: [Amounts, Amounts] = [new Map(), lent()];
  let steps = 0;
  while (approach(shown, target, 0.3, 2)) assert.ok((steps += 1) < 50);
  assert.deepEqual([...shown.values()].map((one) => one.amount).sort(), [...target.values()].map((one) => one.amount).sort());
  while (approach(shown, new Map(), 0.3, 2)) assert.ok((steps += 1) < 100);
  assert.equal(shown.size, 0);
});

test("nothing lent makes no bands", () => {
  assert.deepEqual(bands(new Map(), 0), []);
  assert.equal(greatest(new Map()), 0);
});
