// What was run, and whatever a reader must know before believing a figure.

import { element } from "../dom.ts";
import { sweptDesigns } from "../explorer.ts";
import { seconds } from "../format.ts";
import type { Page } from "../page.ts";
import { brokenLaws, unfinished } from "../trust.ts";

export function header({ document: { report, version } }: Page): HTMLElement {
  const facts: [string, string][] = [
    ["Workload", report.workload],
    ...report.scaling.map((note): [string, string] => ["Scaling", note]),
    ["Designs", report.explorer ? sweptDesigns(report.explorer) : report.designs.map((design) => design.name).join(", ") || "none"],
    ["Seed", String(report.seed)],
    ["Simulated time", seconds(report.simulated_seconds)],
    ["Wall time", seconds(report.wall_seconds)],
    ["Program", `flashyard ${version}`],
  ];
  return element(
    "header",
    {},
    element("p", { class: "kind" }, `Flashyard report: scenario ${report.scenario}`),
    element("h1", {}, report.title || report.scenario),
    element("dl", { class: "facts" }, facts.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    report.about.length === 0 ? null : element("dl", { class: "about" }, report.about.map(({ name, text }) => element("div", {}, element("dt", {}, name), element("dd", {}, text)))),
    report.command === "" ? null : element("p", { class: "command" }, "This command repeats the run: ", element("code", {}, report.command)),
  );
}

/** Broken laws and missing runs, loudly; what the run itself notes; that all laws hold, quietly. */
export function warnings({ document: { report }, designs }: Page): HTMLElement[] {
  const shown: HTMLElement[] = [];
  const listed = (lines: readonly [string, string][]): HTMLElement => element("ul", {}, lines.map(([name, what]) => element("li", {}, element("b", {}, name), `: ${what}`)));
  const missing = unfinished(report);
  if (missing) {
    shown.push(element("aside", { class: "alert", role: "alert" }, element("h2", {}, missing.title), element("p", {}, missing.text), missing.items.length > 0 ? listed(missing.items) : null));
  }
  const broken = brokenLaws(report);
  if (broken.length > 0) {
    shown.push(
      element("aside", { class: "alert", role: "alert", id: "laws" }, element("h2", {}, "Broken laws: do not trust these figures"), element("p", {}, "A law that must hold on every run does not. This is an error of the program; please report it."), listed(broken)),
    );
  } else if (designs.length > 0) {
    shown.push(element("p", { class: "quiet", id: "laws" }, "All laws that are checked on a run (Little’s law, utilization, conservation of requests and bytes) hold in every design."));
  }
  if (report.notes.length > 0) {
    shown.push(element("aside", { class: "note", id: "notes" }, element("h2", {}, "Read this with the figures"), element("ul", {}, report.notes.map((note) => element("li", {}, note)))));
  }
  return shown;
}
