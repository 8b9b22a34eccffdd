import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "../fixture/generate.ts";
import * as findings from "../src/findings.ts";
import { componentsOf, figure, runMetric, shareSeries, shownMetrics, text } from "../src/metrics.ts";
import { page } from "../src/page.ts";
import { rankedBy } from "../src/ranking.ts";
import type { Metric, ReportDocument } from "../src/schema.ts";

const plain = (words: string): string => words.replace(/[\u00a0\u202f]/g, " ");
const metric = (of: Partial<Metric>): Metric => ({ key: "guests", title: "Guests", unit: "count", better: "neither", needs: "nothing", about: "guests of a server", absent: "unknown", component: null, series: false, shown: true, ...of });

/** A report of a system that has volumes and no drives, and none of the figures that sentences go by. */
function another(): ReportDocument {
  const document = fixture({ designs: ["pv", "passed-through"], drives: 0, busy: 0, intervals: 3 });
  document.components = [{ id: "volume", plural: "volumes", title: "Volumes" }];
  document.metrics = [
    metric({ better: "more" }),
    metric({ key: "cache.hits", title: "Hits", unit: "share", component: "volume" }),
    metric({ key: "depth", title: "Depth", unit: "requests", component: "volume" }),
    metric({ key: "busy", title: "Busy", unit: "share", component: "volume", series: true, shown: false, absent: "no request" }),
  ];
  document.report.designs = document.report.designs.map(({ name, design, computes_on_host, point, laws }, index) => {
    const volumes = [{ name: "vol0", cache: { hits: 0.25 }, depth: 3200 }];
    const known = { name, design, computes_on_host, point, laws, latency_split: [], halves: [], guests: 12 + 12 * index, volumes };
    return known as unknown as ReportDocument["report"]["designs"][number];
  });
  for (const detail of document.details) {
    const { drives: _, ...timeline } = detail.timeline;
    detail.timeline = { ...timeline, volumes: [{ name: "vol0", busy: [0.5, null, 1] }] } as unknown as typeof detail.timeline;
  }
  return document;
}

test("the table of runs has the declared figures in their order", () => {
  const titles = shownMetrics(fixture(), null).map(({ title }) => title);
  assert.deepEqual(titles.slice(0, 3), ["Throughput", "Requests", "Latency, mean"]);
  assert.deepEqual([titles.length, titles.at(-1)], [21, "Measured window"]);
  assert.deepEqual(shownMetrics(fixture(), "drive"), []);
});

test("a figure is where its key leads, and null where there is none", () => {
  const of = { ios: 7, latency_us: { p99: 1.5 }, settled: null };
  assert.deepEqual(["ios", "latency_us.p99", "latency_us.p50", "settled", "constructor", "ios.x"].map((key) => figure(of, key)), [7, 1.5, null, null, null, null]);
});

test("a figure is written by its unit, and any other unit is a symbol", () => {
  const texts = [["microseconds", 1500], ["share", 0.5], ["bytes_per_second_per_dollar", 2.5e7], ["dollars", 12], ["requests", 3200], ["count", null]] as const;
  assert.deepEqual(texts.map(([unit, value]) => plain(text(metric({ unit }), value))), ["1.50 ms", "50.0 %", "25.0 MB/s/$", "$12.00", "3.20 krequests", "–"]);
});

test("a metric ranks by its better end and by what that needs", () => {
  const shown = page(fixture());
  const best = (key: string): string[] => rankedBy(shown, runMetric(shown.document, key) ?? metric({})).map((place) => shown.designs[place]?.name ?? "");
  assert.deepEqual(best("throughput_bytes_per_s"), ["conv"]);
  assert.deepEqual(best("latency_us.mean"), ["conv"]);
  assert.deepEqual(best("latency_us.p99"), [], "a closed loop at unequal load");
  assert.deepEqual(best("host_utilization"), [], "neither end is better");
});

test("what drives are busy with over time is every share that is declared of them", () => {
  assert.deepEqual(shareSeries(fixture()).map(({ name }) => name), ["Cores busy", "Cores lent to others", "Commands sent to lenders", "Buses busy", "Dies busy", "Mapping misses"]);
  assert.equal(shareSeries(fixture()).at(-1)?.none, "no mapping access");
});

test("a system that the page does not know has its runs, its components and its series", () => {
  const shown = page(another());
  const [volume] = shown.document.components;
  assert.ok(volume);
  assert.deepEqual(rankedBy(shown, metric({ better: "more" })), [1]);
  const rows = shown.designs.map((design) => componentsOf(design.result, volume).map((one) => shownMetrics(shown.document, "volume").map((of) => plain(text(of, figure(one, of.key))))));
  assert.deepEqual(rows[0], [["25.0 %", "3.20 krequests"]]);
  const [busy] = shareSeries(shown.document);
  assert.deepEqual([busy?.name, busy?.none], ["Busy", "no request"]);
  assert.deepEqual(busy?.rows(shown.designs[0]?.detail.timeline ?? shown.document.details[0]!.timeline), [{ name: "vol0", values: [0.5, null, 1] }]);
  assert.equal(findings.summaryFinding(shown), "");
  for (const finding of [findings.throughputFinding, findings.tailFinding, findings.splitFinding, findings.utilizationFinding, findings.steadinessFinding, findings.lendingFinding, findings.wearFinding, findings.costFinding]) {
    assert.match(finding(shown), /^\S.*\.$/s, finding(shown));
    assert.doesNotMatch(finding(shown), /undefined|NaN|Infinity|null|–/, finding(shown));
  }
});
