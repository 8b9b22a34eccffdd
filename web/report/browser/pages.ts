// Pages to test, from the committed template: the document is put in as `html_page` of crates/pure/report does it.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { charts } from "../fixture/charts.ts";
import { sweep } from "../fixture/explorer.ts";
import { fixture } from "../fixture/generate.ts";
import type { ChartPage } from "../src/chartpage/schema.ts";
import type { ReportDocument } from "../src/schema.ts";

export const OUT = resolve("out/browser");

/** Writes a page into the output directory; its address. */
export function pageOf(name: string, document: ReportDocument | ChartPage): string {
  const template = readFileSync("dist/report.html", "utf8");
  const json = JSON.stringify(document).replaceAll("<", "\\u003c");
  mkdirSync(OUT, { recursive: true });
  const file = join(OUT, `${name}.html`);
  writeFileSync(file, template.replace("%REPORT_DOCUMENT%", () => json));
  return pathToFileURL(file).href;
}

const SEVEN = ["conv", "oc", "shrunk", "vh", "vh-ideal", "proch", "xbof"];

/** Names that try to leave the place they stand in. */
export const HOSTILE = `</script><script>window.broken=1</script><img src=x onerror="window.broken=1">{a|b} ${"long".repeat(30)}`;

function hostile(): ReportDocument {
  const document = fixture({ designs: ["conv", "<b onclick=window.broken=1>xbof</b>{b}"], drives: 3, busy: 1, intervals: 40 });
  document.report.scenario = HOSTILE;
  document.report.workload = HOSTILE;
  [document.report.title, document.report.command, document.report.notes] = [HOSTILE, HOSTILE, [HOSTILE]];
  for (const about of document.report.about) [about.name, about.text] = [HOSTILE, HOSTILE];
  document.resolved = `${HOSTILE}\n<!-- <script> -->\nseed = 1 # [A] any`;
  document.version = "<i>0</i>";
  for (const design of document.report.designs) for (const drive of design.drives) drive.name = `<img src=x onerror=window.broken=1>${drive.name}`;
  for (const detail of document.details) for (const drive of detail.timeline.drives) drive.name = `<img src=x onerror=window.broken=1>${drive.name}`;
  return document;
}

/** A sweep whose names try the same, with a run that moved nothing and a broken law in a run that is not shown. */
function hostileSweep(): ReportDocument {
  const document = sweep();
  const found = document.report.explorer;
  found?.points.forEach((point, place) => {
    point.name = `<img src=x onerror=window.broken=1>${place}`;
    if (point.design === "vh") point.design = HOSTILE;
    if (point.design === "oc") [point.latency_p99_us, point.energy_joules_per_gb, point.throughput_bytes_per_s] = [null, null, 0];
  });
  const design = document.report.designs[2];
  if (design) design.laws = { hold: false, broken: ["bytes: 12 GiB read, 11 GiB from flash"] };
  return document;
}

function broken(): ReportDocument {
  const document = fixture();
  document.report.complete = false;
  const design = document.report.designs[1];
  if (design) design.laws = { hold: false, broken: ["Little's law: 64 requests in flight on average, but 61.2 from throughput and latency", "bytes: 12 GiB read by the application, 11 GiB from flash and buffers"] };
  return document;
}

/** Every figure that may be missing is. */
function hollow(): ReportDocument {
  const document = fixture({ designs: ["conv", "xbof"], drives: 2, busy: 1, intervals: 0 });
  for (const detail of document.details) {
    detail.latency = [];
    detail.percentiles = [];
    detail.lending = [];
    for (const flash of detail.flash) flash.erase_counts = [];
  }
  for (const design of document.report.designs) {
    design.latency_split = [];
    design.write_amplification = null;
    design.throughput_bytes_per_s_per_dollar = null;
    for (const drive of design.drives) drive.write_amplification = null;
  }
  return document;
}

function none(): ReportDocument {
  const document = fixture({ designs: [], drives: 0, busy: 0, intervals: 0 });
  document.report.complete = false;
  document.resolved = "";
  return document;
}

/** Charts whose every name tries to leave its place, of which nothing was finished. */
function hostileCharts(): ChartPage {
  const document = charts();
  [document.title, document.kind, document.complete] = [HOSTILE, HOSTILE, false];
  document.facts.push([HOSTILE, HOSTILE]);
  for (const section of document.sections) {
    [section.title, section.finding, section.choice] = [HOSTILE, HOSTILE, HOSTILE];
    for (const table of section.tables) [table.caption, table.rows] = [HOSTILE, [[HOSTILE, HOSTILE]]];
    for (const panel of section.panels) {
      panel.name = HOSTILE;
      for (const chart of panel.charts) {
        [chart.caption, chart.x.name, chart.y.unit, chart.categories] = [HOSTILE, HOSTILE, HOSTILE, chart.categories.map(() => HOSTILE)];
        for (const one of chart.series) one.name = `<img src=x onerror=window.broken=1>${one.name}`;
      }
    }
  }
  return document;
}

/** A report that a run gave. */
const real = (name: string): ReportDocument => JSON.parse(readFileSync(`report/fixture/real/${name}.json`, "utf8")) as ReportDocument;

/** Name of a case and its document. */
export const CASES: Record<string, () => ReportDocument | ChartPage> = {
  demo: () => fixture(),
  seven: () => fixture({ designs: SEVEN, drives: 12, busy: 6, intervals: 200 }),
  "one-design": () => fixture({ designs: ["conv"], drives: 12, busy: 6, intervals: 200 }),
  "one-drive": () => fixture({ designs: ["conv", "xbof"], drives: 1, busy: 1, intervals: 50 }),
  "hundred-drives": () => fixture({ designs: ["conv", "xbof"], drives: 100, busy: 50, intervals: 200 }),
  "one-interval": () => fixture({ designs: ["conv", "xbof"], drives: 4, busy: 2, intervals: 1 }),
  real: () => real("closed"),
  "real-sweep": () => real("sweep"),
  "some-runs": () => {
    const document = sweep();
    if (document.report.explorer) document.report.explorer.is_a_choice = false;
    return document;
  },
  "real-unsteady": () => real("unsteady"),
  sweep,
  charts,
  "hostile-charts": hostileCharts,
  "hostile-sweep": hostileSweep,
  hollow,
  none,
  broken,
  hostile,
};
