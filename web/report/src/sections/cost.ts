// Energy and money.

import { captioned } from "../chart.ts";
import { designBars } from "../charts/bars.ts";
import { PARTS, energyBars } from "../charts/energy.ts";
import { element, folded, section, table } from "../dom.ts";
import { costFinding } from "../findings.ts";
import { bytesPerSecond, dollars, joules } from "../format.ts";
import { declares } from "../metrics.ts";
import type { Page } from "../page.ts";

export function cost(page: Page): HTMLElement | undefined {
  if (!declares(page.document, "bom_dollars", "energy_joules_per_gb")) return undefined;
  const title = "What does it cost in energy and money?";
  const { designs } = page;
  if (designs.length === 0) return section("cost", title, costFinding(page));
  const rows = designs.map((design) => [design.name, ...PARTS.map(([part]) => joules(design.detail.energy_joules[part])), joules(design.result.energy_joules_per_gb)]);
  return section(
    "cost",
    title,
    costFinding(page),
    element(
      "div",
      { class: "grid two" },
      captioned("Energy of all drives per gigabyte moved, by part", energyBars(page)),
      captioned("Price of all drives", designBars(page, "Price", (design) => design.result.bom_dollars, dollars)),
      captioned("Throughput for each dollar", designBars(page, "Throughput per dollar", (design) => design.result.throughput_bytes_per_s_per_dollar, bytesPerSecond)),
    ),
    folded("Energy by part as a table", table("Energy of all drives in the measured window", ["Design", ...PARTS.map(([, name]) => name), "per GB moved"], rows)),
  );
}
