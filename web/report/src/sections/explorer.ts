// What runs of a sweep cost, in money and energy, against what they give.

import { captioned } from "../chart.ts";
import { FACTS, scatter } from "../charts/scatter.ts";
import { switched } from "../choice.ts";
import { element, folded, section, table } from "../dom.ts";
import { PRICES, SERVICES, loadName, runNames } from "../explorer.ts";
import type { Price } from "../explorer.ts";
import { explorerFinding } from "../findings.ts";
import { dollars, joules, listed } from "../format.ts";
import { notShown } from "../page.ts";
import type { Page } from "../page.ts";
import type { Explorer, ExplorerLoad, ExplorerPoint } from "../schema.ts";

export function explorer(page: Page, explored: Explorer): HTMLElement {
  const names = runNames(explored);
  const loads = explored.loads;
  const middle = Math.floor((loads.length - 1) / 2);
  const show = (load: ExplorerLoad, price: Price): Node[] => [
    element("div", { class: "grid two" }, SERVICES.map((service) => captioned(`${service.name} against ${price.label}`, scatter(explored, load, price, service, names)))),
    frontTable(explored, load, price, loadName(page, load), names),
  ];
  const printed = loads.flatMap((load) => PRICES.map((price) => ({ load, price })));
  const chosen = loads.some((load) => load.reference !== null) ? `${explored.reference} and the cheapest run of the same service at each load, where there are such` : "runs that no other one beats in price, p99 and throughput";
  const shown = notShown(page) === "" ? null : `${notShown(page)} The sections below show ${listed(page.designs.map((design) => design.name))}: ${chosen}.`;
  return section(
    "explorer",
    "Which drives are worth their price?",
    explorerFinding(page, explored),
    switched(
      [
        { legend: "Load", options: loads.map((load) => loadName(page, load)), first: middle },
        { legend: "Price", options: PRICES.map((price) => price.name), first: 0 },
      ],
      ([load = 0, price = 0]) => (loads[load] && PRICES[price] ? show(loads[load], PRICES[price]) : []),
      () => printed.map(({ load, price }) => element("div", {}, element("h3", {}, `${loadName(page, load)}, ${price.name.toLowerCase()}`), ...show(load, price))),
    ),
    element("p", { class: "quiet" }, `A dot is a run, larger with more cores. Dots with a rim are on the line of the front: nothing costs less and serves as well. Pale dots are beaten. The dashed line is as far from ${explored.reference} as still counts as the same service; ★ is the cheapest run within it in both pictures. Cost and energy are those of the drives; the host is not in them, so designs whose host does work of drives are on no front.${page.document.report.closed_loop ? " In a closed loop a slower drive is asked for less, so a low p99 without throughput is cheap." : ""}`),
    folded(`All ${explored.points.length} runs as a table`, table("Every run of the sweep", ["Run", "Load", ...FACTS.map(([name]) => name)], loads.flatMap((load) => load.points.flatMap((place) => row(explored, place, names, loadName(page, load)))))),
    shown === null ? null : element("p", { class: "quiet" }, shown),
  );
}

function row(explored: Explorer, place: number, names: readonly string[], load: string): string[][] {
  const point = explored.points[place];
  return point ? [[names[place] ?? point.name, load, ...FACTS.map(([, text]) => text(point))]] : [];
}

/** The runs that no other one beats in price, p99 and throughput, and those that are best with one of them. */
function frontTable(explored: Explorer, load: ExplorerLoad, price: Price, at: string, names: readonly string[]): HTMLElement {
  const members = load.points.filter((place) => explored.points[place]?.fronts.includes(price.both));
  const paid = (place: number): number => price.value(explored.points[place] as ExplorerPoint) ?? Infinity;
  const rows = members
    .sort((a, b) => paid(a) - paid(b))
    .map((place) => {
      const point = explored.points[place] as ExplorerPoint;
      const alone = SERVICES.filter((service) => point.fronts.includes(price[service.key])).map((service) => service.label);
      const name = `${place === load.cheapest ? "★\u00a0" : ""}${names[place] ?? point.name}`;
      return [name, ...FACTS.map(([, text]) => text(point)), dollars(point.jbof_dollars), joules(point.energy_joules), alone.join(", ") || "–"];
    });
  const star = load.cheapest !== null && members.includes(load.cheapest) ? ` ★ is the cheapest within ${explored.within_percent} % of ${explored.reference}.` : "";
  const caption = `${at}: ${members.length} of ${load.points.length} runs that none beats in ${price.name.toLowerCase()}, p99 and throughput; the last column has what none beats even alone with ${price.name.toLowerCase()}.${star}`;
  return table(caption, ["Run", ...FACTS.map(([name]) => name), "Price of all drives", "Energy of all drives", "Even alone"], rows);
}
