// Write amplification, flash operations and erases of each drive.

import { captioned } from "../chart.ts";
import { columns } from "../charts/columns.ts";
import { switched } from "../choice.ts";
import { element, folded, section, table } from "../dom.ts";
import { wearFinding } from "../findings.ts";
import { count, digits, ratio } from "../format.ts";
import { figure } from "../metrics.ts";
import { driveName } from "../page.ts";
import type { Design, Page } from "../page.ts";
import { reportsWear } from "../reported.ts";
import { eraseCounts, eraseSummary } from "../shape.ts";

/** More columns than this are summed up in steps. */
const ERASE_COLUMNS_MAX = 40;

export function wear(page: Page): HTMLElement | undefined {
  if (!reportsWear(page.document)) return undefined;
  const title = "What does it cost the flash?";
  const { designs } = page;
  if (designs.every((design) => design.result.drives.length === 0)) return section("wear", title, wearFinding(page));
  const show = (design: Design): HTMLElement => element("div", { class: "grid two" }, amplification(design), erases(design));
  return section(
    "wear",
    title,
    wearFinding(page),
    switched(
      [{ legend: "Design", options: designs.map((design) => design.name), first: designs.length - 1 }],
      ([chosen = 0]) => (designs[chosen] ? [show(designs[chosen])] : []),
      () => designs.map((design) => element("div", { class: "metric" }, element("h3", {}, design.name), show(design))),
    ),
    folded("Flash operations and wear of each drive as a table", ...designs.map(operations)),
  );
}

function amplification(design: Design): HTMLElement {
  const data = design.result.drives.map((drive) => ({ name: drive.name, value: drive.write_amplification, text: ratio(drive.write_amplification) }));
  if (data.every((drive) => !drive.value)) return captioned(`Write amplification of each drive, ${design.name}`, element("p", {}, figure(design.result, "write_bytes") === 0 ? "Nothing was written." : "It is not known."));
  return captioned(`Write amplification of each drive, ${design.name}`, columns(`Write amplification of each drive of ${design.name}`, design.hue, "slots written for each host slot", "drive", data));
}

function erases(design: Design): HTMLElement {
  const counts = eraseCounts(design.detail);
  const title = `Superblocks by erases since new, ${design.name}`;
  if (counts.length === 0) return captioned(title, element("p", {}, "No superblock was counted."));
  const [least, most] = [counts[0]?.[0] ?? 0, counts[counts.length - 1]?.[0] ?? 0];
  if (most === 0) return captioned(title, element("p", {}, "No superblock was erased."));
  const step = Math.max(1, Math.ceil((most - least + 1) / ERASE_COLUMNS_MAX));
  const data = Array.from({ length: Math.floor((most - least) / step) + 1 }, (_, index) => {
    const from = least + index * step;
    const blocks = counts.filter(([erased]) => erased >= from && erased < from + step).reduce((total, [, superblocks]) => total + superblocks, 0);
    return { name: step === 1 ? String(from) : `${from}–${from + step - 1}`, value: blocks, text: `${count(blocks)} superblocks` };
  });
  return captioned(title, columns(`Superblocks of ${design.name} by number of erases`, design.hue, "superblocks of all drives", "erases", data));
}

function operations(design: Design): HTMLElement {
  const rows = design.result.drives.map((drive, index) => {
    const flash = design.detail.flash[index];
    const { least, mean, most } = eraseSummary(flash?.erase_counts ?? []);
    return [
      driveName(design, index),
      ratio(drive.write_amplification),
      count(flash?.page_reads ?? null),
      count(flash?.page_programs ?? null),
      count(flash?.block_erases ?? null),
      count(flash?.read_retries ?? null),
      count(least),
      mean === null ? "–" : digits(mean),
      count(most),
    ];
  });
  return table(
    `${design.name}: operations in the measured window; erases of superblocks since the drive was new`,
    ["Drive", "Write amplification", "Pages read", "Pages programmed", "Blocks erased", "Read retries", "Erases, least", "Erases, mean", "Erases, most"],
    rows,
  );
}
