// The page's words on reports that a run gave: `crates/edge/cli/tests/real_reports.rs` writes them and compares them with
// what the program writes today.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as findings from "../src/findings.ts";
import { figure } from "../src/metrics.ts";
import { page } from "../src/page.ts";
import type { Page } from "../src/page.ts";
import { ranked, reasons } from "../src/ranking.ts";
import type { ReportDocument } from "../src/schema.ts";

const plain = (text: string): string => text.replace(/[\u00a0\u202f]/g, " ");
const real = (name: string): Page => page(JSON.parse(readFileSync(`report/fixture/real/${name}.json`, "utf8")) as ReportDocument);
const names = (shown: Page, places: number[]): string[] => places.map((place) => shown.designs[place]?.name ?? "");
const NAMES = ["closed", "open", "unsteady", "sweep"];

test("every finding on a real report is one readable text", () => {
  for (const name of NAMES) {
    const shown = real(name);
    for (const finding of [findings.summaryFinding, findings.throughputFinding, findings.tailFinding, findings.splitFinding, findings.utilizationFinding, findings.steadinessFinding, findings.lendingFinding, findings.wearFinding, findings.costFinding]) {
      assert.match(finding(shown), /^\S.*\.$/s, `${name}: ${finding(shown)}`);
      assert.doesNotMatch(finding(shown), /undefined|NaN|Infinity|null|–|more than 0 times/, `${name}: ${finding(shown)}`);
    }
  }
});

test("a real report tells its title, its designs and its command", () => {
  const { report } = real("closed").document;
  assert.equal(report.title, "Two busy drives of three in a closed loop");
  assert.deepEqual(report.about.map(({ name }) => name), ["conv", "oc", "shrunk", "vh"]);
  assert.equal(report.command, "flashyard run crates/edge/cli/tests/reports/closed.toml");
});

test("the timeline of a real report ends with its window, and no design is called unsteady for how it ends", () => {
  const shown = real("closed");
  for (const { name, result, detail: { timeline } } of shown.designs) {
    const end = timeline.measured_from_seconds + (figure(result, "window_seconds") ?? 0);
    assert.ok(Math.abs(timeline.end_seconds - end) < 1e-6, name);
    // What copies back after its streams have stopped has a longer timeline than streams.
    assert.equal(timeline.measured_to_seconds < timeline.end_seconds - 1e-6, name === "vh", name);
  }
  assert.deepEqual(shown.document.report.notes, []);
  assert.doesNotMatch(findings.steadinessFinding(shown), /least steady/);
});

test("a real closed loop at unequal load ranks throughput and no tail", () => {
  const shown = real("closed");
  assert.deepEqual(names(shown, ranked(shown, (design) => design.result.throughput_bytes_per_s, "most", "nothing")), ["conv", "oc"]);
  assert.deepEqual(ranked(shown, (design) => design.result.latency_us.p99, "least", "equal_load"), []);
  assert.deepEqual(ranked(shown, (design) => design.result.latency_us.p999, "least", "equal_load"), []);
  assert.match(findings.tailFinding(shown), /This ranks nobody: in a closed loop/);
  assert.doesNotMatch(findings.summaryFinding(shown), /p99/);
});

test("designs whose host works win neither energy nor price in a real report", () => {
  const shown = real("closed");
  for (const value of [(design: Page["designs"][number]) => design.result.energy_joules_per_gb, (design: Page["designs"][number]) => design.result.bom_dollars]) {
    const cheapest = [...shown.designs].sort((a, b) => (value(a) ?? 0) - (value(b) ?? 0))[0];
    assert.equal(cheapest?.name, "oc", "its drives take least");
    assert.deepEqual(names(shown, ranked(shown, value, "least", "work_in_drives")), ["shrunk"]);
  }
  assert.match(plain(findings.costFinding(shown)), /^Cheapest: shrunk, .*Not ranked: oc and vh, where host cores do part of the work\.$/);
  assert.equal(reasons(shown).length, 2);
});

test("a real open loop at equal load ranks tails", () => {
  const shown = real("open");
  assert.deepEqual(names(shown, ranked(shown, (design) => design.result.latency_us.p99, "least", "equal_load")), ["conv"]);
  assert.deepEqual(reasons(shown), []);
});

test("a real window that is not steady says so, and its one design wins nothing", () => {
  const shown = real("unsteady");
  assert.match(shown.document.report.notes.join(), /^conv: not steady: throughput goes from .* and write amplification goes from 1\.00 to \d/);
  assert.deepEqual(ranked(shown, (design) => design.result.throughput_bytes_per_s, "most", "nothing"), []);
  assert.match(findings.summaryFinding(shown), /^conv moves /);
});

test("a real sweep of one drive's load has no explorer and no ranks", () => {
  const shown = real("sweep");
  assert.equal(shown.explorer?.is_a_choice, false);
  assert.equal(shown.comparable, false);
  assert.equal(findings.summaryFinding(shown), "These runs serve different loads, so none is marked as the best.");
});
