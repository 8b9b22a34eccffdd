// What the page may not say: of figures that a system does not report, of requests and writes that there were not.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fixture } from "../fixture/generate.ts";
import * as findings from "../src/findings.ts";
import { page } from "../src/page.ts";
import type { Page } from "../src/page.ts";
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
