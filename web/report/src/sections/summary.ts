// The figures of all designs side by side, the best marked.

import { element, scrolling, section } from "../dom.ts";
import { summaryFinding } from "../findings.ts";
import { bytes, bytesPerSecond, count, dollars, joules, latency, percent, perSecond, ratio, seconds } from "../format.ts";
import type { Design, Page } from "../page.ts";
import type { Figure } from "../schema.ts";
import { ranked, reasons } from "../ranking.ts";
import type { Needs } from "../ranking.ts";

interface Row {
  key: string;
  name: string;
  value: (design: Design) => Figure;
  text: (value: Figure) => string;
  better?: "most" | "least";
  needs?: Needs;
}

const ROWS: Row[] = [
  { key: "throughput", name: "Throughput", value: (d) => d.result.throughput_bytes_per_s, text: bytesPerSecond, better: "most" },
  { key: "iops", name: "Requests", value: (d) => d.result.iops, text: perSecond, better: "most" },
  { key: "mean", name: "Latency, mean", value: (d) => d.result.latency_us.mean, text: latency, better: "least" },
  { key: "p50", name: "Latency, p50", value: (d) => d.result.latency_us.p50, text: latency, better: "least", needs: "equal load" },
  { key: "p99", name: "Latency, p99", value: (d) => d.result.latency_us.p99, text: latency, better: "least", needs: "equal load" },
  { key: "p999", name: "Latency, p99.9", value: (d) => d.result.latency_us.p999, text: latency, better: "least", needs: "equal load" },
  { key: "max", name: "Latency, longest", value: (d) => d.result.latency_us.max, text: latency, better: "least", needs: "equal load" },
  { key: "processor", name: "Drive cores busy", value: (d) => d.result.processor_utilization, text: percent },
  { key: "host", name: "Host cores busy", value: (d) => d.result.host_utilization, text: percent },
  { key: "flash", name: "Flash busy", value: (d) => d.result.flash_utilization, text: percent },
  { key: "miss", name: "Mapping misses", value: (d) => d.result.mapping_miss_ratio, text: percent, better: "least" },
  { key: "redirected", name: "Redirected requests", value: (d) => d.result.redirected_share, text: percent },
  { key: "waf", name: "Write amplification", value: (d) => d.result.write_amplification, text: ratio, better: "least" },
  { key: "energy-gb", name: "Energy of drives per GB", value: (d) => d.result.energy_joules_per_gb, text: joules, better: "least", needs: "all work in the drives" },
  { key: "cost", name: "Price of drives", value: (d) => d.result.bom_dollars, text: dollars, better: "least", needs: "all work in the drives" },
  { key: "per-dollar", name: "Throughput per dollar", value: (d) => d.result.throughput_bytes_per_s_per_dollar, text: (v) => (v === null ? bytesPerSecond(v) : `${bytesPerSecond(v)}/$`), better: "most", needs: "all work in the drives" },
  { key: "ios", name: "Requests measured", value: (d) => d.result.ios, text: count },
  { key: "moved", name: "Data measured", value: (d) => d.result.read_bytes + d.result.write_bytes, text: bytes },
  { key: "energy", name: "Energy of drives", value: (d) => d.result.energy_joules, text: joules },
  { key: "window", name: "Measured window", value: (d) => d.result.window_seconds, text: seconds },
];

export function summary(page: Page): HTMLElement {
  const { designs } = page;
  const row = ({ key, name, value, text, better, needs }: Row): HTMLElement => {
    const values = designs.map(value);
    const marked = better ? ranked(page, value, better, needs ?? "nothing") : [];
    const cells = values.map((one, index) =>
      marked.includes(index)
        ? element("td", { class: "best" }, element("span", { class: "star", title: "best" }, "★\u00a0"), text(one))
        : element("td", {}, text(one)),
    );
    return element("tr", { "data-row": key }, element("th", { scope: "row" }, name), cells);
  };
  const head = element("tr", {}, element("th", { scope: "col" }, "Figure"), designs.map((design) =>
    element("th", { scope: "col" }, element("span", { class: "swatch", style: `--light:${design.hue.light};--dark:${design.hue.dark}` }), design.name)));
  const table = element("table", { class: "summary" }, element("caption", {}, designs.length > 1 ? "Figures of the measured window. ★ marks the best, where one end of the scale is better and the designs compare." : "Figures of the measured window."), element("thead", {}, head), element("tbody", {}, ROWS.map(row)));
  return section("summary", "Which design serves best?", summaryFinding(page), designs.length > 0 ? scrolling("Figures of all designs", table) : null, ...reasons(page).map((reason) => element("p", { class: "quiet" }, reason)));
}
