// What the page may not say: of figures that a system does not report, of requests and writes that there were not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sweep } from "../fixture/explorer.ts";
import { fixture } from "../fixture/generate.ts";
import * as findings from "../src/findings.ts";
import { notShown, page } from "../src/page.ts";
import type { Page } from "../src/page.ts";
import { rankedBy, reasons } from "../src/ranking.ts";
import { reportsCourse, reportsSplit, reportsWaits, reportsWear } from "../src/reported.ts";
import type { ReportDocument } from "../src/schema.ts";

const plain = (text: string): string => text.replace(/[\u00a0\u202f]/g, " ");

/** The usual report after a change. */
function changed(change: (document: ReportDocument) => void): Page {
  const document = fixture();
  change(document);
  return page(document);
}

/** Takes what a system does not report out of a document: declarations and values. */
function without(document: ReportDocument, ...keys: string[]): void {
  document.metrics = document.metrics.filter((metric) => !keys.includes(metric.key));
  for (const design of document.report.designs) for (const key of keys) delete design[key];
}

test("designs are not called alike in a figure that they have not", () => {
  const words = (...keys: string[]): string => findings.summaryFinding(changed((document) => without(document, ...keys)));
  assert.doesNotMatch(words("throughput_bytes_per_s"), /throughput:/i);
  assert.match(words("throughput_bytes_per_s"), /^Least mean latency: conv/);
  assert.doesNotMatch(words("latency_us"), /latency/);
  assert.equal(words("throughput_bytes_per_s", "latency_us", "throughput_bytes_per_s_per_dollar"), "");
  // One of three that has it is compared with none.
  const one = changed((document) => document.report.designs.slice(1).forEach((design) => (design.throughput_bytes_per_s = null)));
  assert.doesNotMatch(findings.summaryFinding(one), /most throughput: /i);
  const alike = changed((document) => document.report.designs.forEach((design) => (design.throughput_bytes_per_s = 1e9)));
  assert.match(plain(findings.summaryFinding(alike)), /^Most throughput: all alike;/);
});

test("what a system does not report has no section", () => {
  const has = (...keys: string[]) => {
    const { document } = changed((document) => without(document, ...keys));
    return [reportsWaits(document), reportsSplit(document), reportsWear(document), reportsCourse(document)];
  };
  assert.deepEqual(has(), [true, true, true, true]);
  const percentiles = ["p50", "p99", "p999", "p9999"].map((name) => `latency_us.${name}`);
  assert.deepEqual(has(...percentiles), [false, true, true, true]);
  assert.deepEqual(has("write_amplification"), [true, true, false, true]);
  assert.deepEqual(has("read_bytes_per_s", "write_bytes_per_s"), [true, true, true, false]);
  const whole = changed((document) => (document.causes = [])).document;
  assert.equal(reportsSplit(whole), false);
});

test("no request and no write are told only where they were counted", () => {
  const bare = (ios: number | null, write_bytes: number | null): string => {
    const shown = changed((document) => {
      for (const design of document.report.designs) [design.ios, design.write_bytes, design.write_amplification, design.latency_split] = [ios, write_bytes, null, []];
      for (const detail of document.details) detail.percentiles = [];
    });
    return [findings.tailFinding(shown), findings.splitFinding(shown), findings.wearFinding(shown)].join(" ");
  };
  assert.equal((bare(0, 0).match(/No request was completed/g) ?? []).length, 2);
  assert.match(bare(0, 0), /Nothing was written/);
  for (const [ios, bytes] of [[null, null], [7, 7]] as const) {
    assert.doesNotMatch(bare(ios, bytes), /No request was completed|Nothing was written/);
    assert.doesNotMatch(bare(ios, bytes), /undefined|NaN/);
  }
});

test("how steady a run is takes series, and some data", () => {
  const absent = changed((document) => {
    for (const { timeline } of document.details) timeline.drives = timeline.drives.map(({ name }) => ({ name }) as unknown as (typeof timeline.drives)[number]);
  });
  assert.equal(findings.steadinessFinding(absent), "No throughput was recorded over time.");
  const still = changed((document) => {
    for (const { timeline } of document.details) for (const drive of timeline.drives) [drive.read_bytes_per_s, drive.write_bytes_per_s] = [drive.read_bytes_per_s.map(() => 0), drive.write_bytes_per_s.map(() => 0)];
  });
  assert.equal(findings.steadinessFinding(still), "No data was moved in the measured window.");
});

test("cores that are not reported are not idle", () => {
  const shown = changed((document) => {
    for (const design of document.report.designs) for (const drive of design.drives) delete (drive as { processor_utilization?: unknown }).processor_utilization;
  });
  assert.equal(findings.utilizationFinding(shown), "There is no drive to look at.");
});

const SUPERLATIVES = /[Mm]ost (data|throughput|even)|[Ll]east (mean|p99|energy|even|steady)|[Cc]heapest|steadiest|stars?\b/;
const WORDS = [findings.summaryFinding, findings.throughputFinding, findings.tailFinding, findings.utilizationFinding, findings.steadinessFinding, findings.costFinding];

test("runs of different loads have ranges and no best", () => {
  const document = sweep();
  const many = { ...document.report, explorer: { ...document.report.explorer!, shown: document.report.designs.map((_, place) => place) } };
  for (const shown of [page(document), page({ ...document, report: many })]) {
    assert.equal(shown.comparable, false);
    for (const finding of WORDS) {
      assert.doesNotMatch(finding(shown), SUPERLATIVES, finding(shown));
      assert.match(finding(shown), /^\S.*\.$/s);
    }
  }
  assert.match(plain(findings.throughputFinding(page(document))), /^Throughput is between [\d.]+ GB\/s in .+ and [\d.]+ GB\/s in .+\.$/);
  assert.match(plain(findings.costFinding(page(document))), /^The drives cost between \$[\d.\s]+ in .+ and \$[\d.\s]+ in .+\. A gigabyte moved takes between [\d.]+ m?J in .+ and [\d.]+ m?J in .+\./);
});

test("with several seeds the summary of one of them calls none the best", () => {
  const shown = changed((document) => {
    document.report.seeds = { seeds: [1, 2], designs: [], differences: [] };
    document.report.closed_loop = false;
  });
  assert.equal(findings.summaryFinding(shown), "These are the figures of seed 1 alone. “Is a difference one?” below has the means over all seeds, and which differences there are.");
  for (const metric of shown.document.metrics) assert.deepEqual(rankedBy(shown, metric), [], metric.key);
  for (const finding of WORDS) assert.doesNotMatch(finding(shown), SUPERLATIVES, finding(shown));
});

test("a page that shows some of the runs says how many, and of which its words are", () => {
  const document = sweep();
  const explored = document.report.explorer!;
  // One load, so that the runs that are shown are ranked.
  explored.loads = explored.loads.slice(0, 1);
  explored.shown = explored.shown.filter((place) => explored.loads[0]?.points.includes(place));
  const some = page(document);
  assert.ok(some.comparable && some.designs.length > 1);
  assert.equal(notShown(some), `${some.designs.length} of 150 runs are shown one by one.`);
  assert.match(findings.throughputFinding(some), / moves most data of the runs shown, /);
  assert.match(findings.summaryFinding(some), /^Of the runs shown, /);
  assert.match(findings.costFinding(some), /^Cheapest of the runs shown: .* Least energy for each gigabyte moved of the runs shown: /);
  const all = page(fixture());
  assert.equal(notShown(all), "");
  for (const finding of WORDS) assert.doesNotMatch(finding(all), /runs shown/);
});

test("a latency of no request is none, and ranks nothing", () => {
  const shown = changed((document) => {
    document.report.closed_loop = false;
    const [design] = document.report.designs;
    if (design) [design.ios, design.latency_us] = [0, { mean: null, p50: null, p99: null, p999: null, p9999: null, max: null }];
  });
  assert.match(findings.summaryFinding(shown), /; least mean latency: xbof; least p99: xbof;/);
  assert.equal(shown.designs[0]?.result.latency_us.mean, null);
  const stars = shown.document.metrics.filter(({ key, component }) => component === null && key.startsWith("latency_us.")).map((metric) => rankedBy(shown, metric));
  assert.ok(stars.length > 3 && stars.every((places) => !places.includes(0)), JSON.stringify(stars));
});

test("a percentile beyond all requests has no star and no sentence", () => {
  const of = (ios: number): Page => changed((document) => {
    document.report.closed_loop = false;
    for (const design of document.report.designs) design.ios = ios;
  });
  const starred = (ios: number): string[] => {
    const shown = of(ios);
    return shown.document.metrics.filter((metric) => metric.key.startsWith("latency_us.p") && metric.component === null && rankedBy(shown, metric).length > 0).map(({ key }) => key.slice(11));
  };
  assert.deepEqual([99, 100, 999, 1000, 9999].map(starred), [["p50"], ["p50", "p99"], ["p50", "p99"], ["p50", "p99", "p999"], ["p50", "p99", "p999"]]);
  assert.doesNotMatch(findings.summaryFinding(of(99)), /p99/);
  assert.match(findings.summaryFinding(of(100)), /least p99: conv/);
  assert.equal(plain(findings.tailFinding(of(999))), "Fewer than 1 000 requests were completed in the measured window, too few to tell of one in a thousand.");
  assert.match(findings.tailFinding(of(1000)), /^One request in a thousand takes longer than/);
});

test("a system without throughput and prices is not told why they rank nothing", () => {
  const keys = ["throughput_bytes_per_s", "bom_dollars", "energy_joules_per_gb", "throughput_bytes_per_s_per_dollar"];
  const words = (...absent: string[]): string[] => {
    const shown = changed((document) => {
      without(document, ...absent);
      for (const design of document.report.designs) design.computes_on_host = true;
    });
    return [findings.throughputFinding(shown), ...reasons(shown)];
  };
  assert.match(words().join(" "), /Energy and price are those of the drives/);
  assert.match(words(...keys).join(" "), /^These runs report no throughput\. Percentiles [^$]*$/);
  assert.doesNotMatch(words(...keys).join(" "), /price/);
});
