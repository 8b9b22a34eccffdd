import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { charts } from "../fixture/charts.ts";
import { explorer, sweep } from "../fixture/explorer.ts";
import { fixture, type Size, USUAL } from "../fixture/generate.ts";
import { designHues } from "../src/colours.ts";
import * as findings from "../src/findings.ts";
import { page } from "../src/page.ts";
import { ranked, reasons } from "../src/ranking.ts";

const plain = (text: string): string => text.replace(/[\u00a0\u202f]/g, " ");
const of = (size: Partial<Size> = {}) => page(fixture({ ...USUAL, ...size }));
const ALL = [findings.summaryFinding, findings.throughputFinding, findings.tailFinding, findings.splitFinding, findings.utilizationFinding, findings.steadinessFinding, findings.lendingFinding, findings.wearFinding, findings.costFinding];

test("the committed fixture is what the generator writes", () => {
  assert.equal(readFileSync("report/fixture/demo.json", "utf8"), `${JSON.stringify(fixture())}\n`);
});

test("the committed fixture of a sweep is what the generator writes", () => {
  assert.equal(readFileSync("report/fixture/explorer.json", "utf8"), `${JSON.stringify(explorer())}\n`);
});

test("the committed fixture of charts is what the generator writes", () => {
  assert.equal(readFileSync("report/fixture/charts.json", "utf8"), `${JSON.stringify(charts())}\n`);
});

test("the finding of a sweep counts dominated runs and names the cheapest of the same service at each load", () => {
  const shown = page(sweep());
  const found = shown.explorer;
  assert.ok(found);
  const dominated = found.points.filter((point) => !point.computes_on_host && !point.fronts.includes("cost_p99_throughput")).length;
  const text = plain(findings.explorerFinding(shown, found));
  assert.ok(text.startsWith(`Of 150 runs ${dominated} are dominated`), text);
  assert.match(text, /with 6 of 12 drives busy: xbof with 3 cores and \d+ % of the map in DRAM, at \$[\d.]+ a drive, [\d.]+ % less than conv;/);
  for (const load of found.loads) [load.reference, load.cheapest] = [null, null];
  assert.match(plain(findings.explorerFinding(shown, found)), /with 4 of 12 drives busy: conv has no figures to compare with\.$/);
});

test("runs of different loads are not ranked", () => {
  assert.equal(findings.summaryFinding(page(sweep())), "These runs serve different loads, so none is marked as the best.");
});

test("a design that hardly uses the cores of its drives is not called the most even", () => {
  const shown = of();
  for (const drive of shown.designs[1]?.result.drives ?? []) drive.processor_utilization = 0;
  const text = plain(findings.utilizationFinding(shown));
  assert.match(text, /The drives of shrunk hardly use their cores\.$/);
  assert.doesNotMatch(text, /in shrunk/);
  const idle = of({ designs: ["oc"] });
  for (const drive of idle.designs[0]?.result.drives ?? []) drive.processor_utilization = 0;
  assert.equal(findings.utilizationFinding(idle), "The drives of oc hardly use their cores.");
});

test("findings name the designs and give figures with units", () => {
  assert.equal(plain(findings.throughputFinding(of())), "conv moves most data, 72.9 GB/s, 1.72 times as much as shrunk.");
  assert.equal(plain(findings.tailFinding(of())), "One request in a thousand takes longer than 812 µs in conv, and longer than 2.11 ms in shrunk. This ranks nobody: in a closed loop a slower design is asked for less, so fewer of its requests wait for flash.");
  assert.match(plain(findings.lendingFinding(of())), /^Drives lend each other on average [\d.]+ cores and [\d.]+ GiB in xbof\. Nothing is lent in conv and shrunk\.$/);
  assert.match(plain(findings.splitFinding(of())), /^What takes most of the mean request: flash die \([\d.]+ % in conv, [\d.]+ % in shrunk and [\d.]+ % in xbof\)\.$/);
});

test("a tail ranks designs of a closed loop only at equal load", () => {
  const closed = of();
  const p99 = (shown: typeof closed): number[] => ranked(shown, (design) => design.result.latency_us.p99, "least", "equal_load");
  assert.deepEqual(p99(closed), []);
  assert.doesNotMatch(findings.summaryFinding(closed), /p99/);
  assert.match(reasons(closed).join(" "), /^Percentiles of latency are not ranked: in a closed loop/);
  closed.document.report.closed_loop = false;
  assert.deepEqual(p99(closed), [0]);
  assert.match(findings.summaryFinding(closed), /least p99: conv/);
  assert.deepEqual(reasons(closed), []);
  const equal = of();
  for (const design of equal.designs) design.result.iops = 1e6;
  assert.deepEqual(p99(equal), [0]);
});

test("money and energy do not rank a design whose host does the work", () => {
  const shown = of({ designs: ["conv", "oc", "shrunk"] });
  const price = ranked(shown, (design) => design.result.bom_dollars, "least", "work_in_drives");
  assert.deepEqual(price.map((place) => shown.designs[place]?.name), ["shrunk"]);
  for (const design of shown.designs) if (design.name === "oc") [design.result.energy_joules_per_gb, design.result.bom_dollars] = [0.001, 1];
  assert.match(plain(findings.costFinding(shown)), /^Cheapest: shrunk, at .* Not ranked: oc, where host cores do part of the work\.$/);
  assert.match(reasons(shown).join(" "), /do not rank oc, where host cores/);
  assert.equal(findings.costFinding(of({ designs: ["oc", "vh"] })), "Host cores do part of the work in every design, and their energy and price are not known.");
});

test("one design wins nothing", () => {
  const shown = of({ designs: ["conv"] });
  assert.deepEqual(ranked(shown, (design) => design.result.throughput_bytes_per_s, "most", "nothing"), []);
  assert.deepEqual(reasons(shown), []);
  for (const finding of ALL) assert.doesNotMatch(finding(shown), /[Mm]ost throughput|[Ll]east|[Cc]heapest|steadiest|most even/, finding(shown));
});

test("flash that was never erased is not a finding", () => {
  const shown = of();
  for (const design of shown.designs) for (const flash of design.detail.flash) flash.erase_counts = [[0, 400]];
  assert.doesNotMatch(findings.wearFinding(shown), /erased/);
});

test("when streams end apart, what comes after does not count as unsteady", () => {
  const shown = of({ designs: ["conv", "shrunk"] });
  for (const { detail } of shown.designs) {
    for (const drive of detail.timeline.drives) [drive.read_bytes_per_s, drive.write_bytes_per_s] = [drive.read_bytes_per_s.map(() => 1e9), drive.write_bytes_per_s.map(() => 0)];
  }
  const timeline = shown.designs[0]?.detail.timeline;
  assert.ok(timeline);
  timeline.measured_to_seconds = timeline.begin_seconds[150] ?? 0;
  for (const drive of timeline.drives) drive.read_bytes_per_s.fill(0.2e9, 150);
  assert.match(plain(findings.steadinessFinding(shown)), /^In every interval of the measured window throughput is within 0\.0 % of its highest\.$/);
});

test("when nothing is lent the page says so", () => {
  assert.equal(findings.lendingFinding(of({ designs: ["conv", "shrunk"] })), "Nothing is lent in any design: every drive works with what it has.");
});

test("designs that are alike are not ranked", () => {
  const shown = of({ designs: ["conv", "conv"] });
  for (const design of shown.designs) design.result.throughput_bytes_per_s = 1e9;
  assert.equal(plain(findings.throughputFinding(shown)), "All designs move 1.00 GB/s, within 1 %.");
});

test("every finding is one readable text whatever is missing", () => {
  const sizes: Partial<Size>[] = [{ designs: [] }, { designs: ["conv"] }, { drives: 1, busy: 1 }, { drives: 0, busy: 0 }, { intervals: 0 }, { intervals: 1 }, { drives: 100, busy: 50 }];
  for (const size of sizes) {
    for (const finding of ALL) {
      const text = finding(of(size));
      assert.match(text, /^\S.*\.$/s, text);
      assert.doesNotMatch(text, /undefined|NaN|Infinity|null|–/, `${JSON.stringify(size)}: ${text}`);
    }
  }
});

test("a known design keeps its colour beside others, and no two of seven share one", () => {
  const [alone] = designHues(["xbof"]);
  const mixed = designHues(["mine", "xbof", "theirs", "conv", "__proto__", "oc", "toString"]);
  assert.deepEqual(mixed[1], alone);
  assert.equal(new Set(mixed.map((hue) => hue.light)).size, 7);
});
