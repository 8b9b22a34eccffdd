// Figures over several seeds in words. Pure functions, tested without a browser.

import { listed } from "./format.ts";
import { runMetric } from "./metrics.ts";
import type { Figure, ReportDocument, SeededFigure, Seeds } from "./schema.ts";

/** A mean with half of its interval, in the form that `text` gives figures. */
export function withInterval(figure: SeededFigure | undefined, text: (value: Figure) => string): string {
  if (!figure || figure.mean === null) return text(null);
  return figure.half_width === null ? text(figure.mean) : `${text(figure.mean)} ± ${text(figure.half_width)}`;
}

/** A sentence for each figure that ranks: the best design, how far the others are from it, and those that do not differ. */
export function differencesInWords(document: ReportDocument, seeds: Seeds): string[] {
  const keys = [...new Set(seeds.differences.map((one) => one.key))];
  return keys.map((key) => {
    const of = seeds.differences.filter((one) => one.key === key);
    const metric = runMetric(document, key);
    const told = (there: boolean): string[] =>
      of.filter((one) => one.is_there === there).map((one) => `${one.design} (${one.percent >= 0 ? "+" : "−"}${Math.abs(one.percent).toFixed(2)} ± ${one.half_width_percent.toFixed(2)} %)`);
    const [some, none] = [told(true), told(false)];
    // Those that not every design finished are left out.
    const common = of[0]?.seeds ?? seeds.seeds.length;
    const fewer = common < seeds.seeds.length ? `, by the ${common} seeds that all of them finished` : "";
    const best = `${metric?.title ?? key}: ${of[0]?.best ?? ""} has the ${metric?.better === "less" ? "least" : "most"}${fewer}`;
    const differ = some.length > 0 ? `; ${listed(some)} differ${some.length > 1 ? "" : "s"} from it` : "";
    const same = none.length > 0 ? `; there is no difference at 95 % confidence to ${listed(none)}` : "";
    return `${best}${differ}${same}.`;
  });
}

/** Those sentences, or why there are none. */
export function seedsFindings(document: ReportDocument, seeds: Seeds): string[] {
  const told = differencesInWords(document, seeds);
  if (told.length > 0) return told;
  if (seeds.designs.length < 2) return ["One design was run."];
  if ((document.report.explorer?.loads.length ?? 0) > 1) return ["These runs serve different loads, so they are not set against each other."];
  return ["Too few seeds were finished by all designs to set them against each other."];
}
