import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fixture, type Size, USUAL } from "../fixture/generate.ts";
import { designHues } from "../src/colours.ts";
import * as findings from "../src/findings.ts";
import { page } from "../src/page.ts";

const plain = (text: string): string => text.replace(/[\u00a0\u202f]/g, " ");
const of = (size: Partial<Size> = {}) => page(fixture({ ...USUAL, ...size }));
const ALL = [findings.summaryFinding, findings.throughputFinding, findings.tailFinding, findings.splitFinding, findings.utilizationFinding, findings.steadinessFinding, findings.lendingFinding, findings.wearFinding, findings.costFinding];

test("the committed fixture is what the generator writes", () => {
  assert.equal(readFileSync("report/fixture/demo.json", "utf8"), `${JSON.stringify(fixture())}\n`);
});

test("findings name the designs and give figures with units", () => {
  assert.equal(plain(findings.throughputFinding(of())), "conv moves most data, 72.9 GB/s, 1.72 times as much as shrunk.");
  assert.equal(plain(findings.tailFinding(of())), "One request in a thousand takes longer than 812 µs in conv, and longer than 2.11 ms in shrunk.");
  assert.match(plain(findings.lendingFinding(of())), /^Drives lend each other on average [\d.]+ cores and [\d.]+ GiB in xbof\. Nothing is lent in conv and shrunk\.$/);
  assert.match(plain(findings.splitFinding(of())), /^What takes most of the mean request: flash die \([\d.]+ % in conv, [\d.]+ % in shrunk and [\d.]+ % in xbof\)\.$/);
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
