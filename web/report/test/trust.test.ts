import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "../fixture/generate.ts";
import type { RunReport } from "../src/schema.ts";
import { brokenLaws, unfinished } from "../src/trust.ts";

const report = (of: Partial<RunReport>): RunReport => ({ ...fixture().report, ...of });

test("a run that failed is not called interrupted", () => {
  const failed = [{ run: "xbof under seed 2", error: "no.toml: no such file" }];
  assert.equal(unfinished(report({})), null);
  assert.deepEqual(unfinished(report({ complete: false, failed })), { title: "A run failed", text: "Its figures are missing.", items: [["xbof under seed 2", "no.toml: no such file"]] });
  assert.equal(unfinished(report({ complete: false, failed: [...failed, ...failed] }))?.title, "2 runs failed");
  assert.equal(unfinished(report({ complete: false, interrupted: true }))?.title, "The run was interrupted");
  assert.match(unfinished(report({ complete: false, interrupted: true, failed }))?.title ?? "", /^The run was interrupted, and a run failed$/);
  // Of a program that did not yet tell.
  assert.equal(unfinished(report({ complete: false }))?.title, "Not every run was finished");
});

test("laws that were broken under other seeds are told with their seed", () => {
  const seeds = { seeds: [1, 2], designs: [], differences: [], broken: [{ name: "conv", seed: 1, laws: ["bytes"] }, { name: "xbof", seed: 2, laws: ["time: 1 against 2"] }] };
  const first = report({ seeds });
  const [conv] = first.designs;
  assert.ok(conv);
  assert.deepEqual(brokenLaws(report({})), []);
  conv.laws = { hold: false, broken: [] };
  assert.deepEqual(brokenLaws(first), [["conv", "a law does not hold"], ["xbof under seed 2", "time: 1 against 2"]]);
});
