// The page of volumes that serve: their trees with rates and queue depths, from status to status.

import { isLeg, type Part, type Status, type Volume } from "./schema.ts";
import { layout, short, width, words } from "./tree.ts";

/** Statuses of a minute, two a second. */
const KEPT = 120;
const STALE_MS = 3000;
const COLUMN = 360;
const ROW = 58;
const BOX = { width: 150, height: 40 };

const main = document.querySelector("main");
let past: Status[] = [];

type Attributes = Record<string, string | number>;

function element(name: string, attributes: Attributes, ...children: (Element | string)[]): Element {
  const svg = ["svg", "g", "rect", "path", "text", "polyline", "title"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

const clipped = (text: string, most: number): string => (text.length > most ? `…${text.slice(1 - most)}` : text);

function drawing(volume: Volume): Element {
  const tree = layout(volume);
  const most = Math.max(...tree.edges.map((edge) => edge.load.bytes));
  const at = (number: number): { x: number; y: number } => {
    const node = tree.nodes[number] ?? { column: 0, row: 0 };
    return { x: node.column * COLUMN, y: node.row * ROW + ROW / 2 };
  };
  const [wide, high] = [(tree.columns - 1) * COLUMN + BOX.width + 70, tree.rows * ROW];
  const svg = element("svg", { class: "tree", viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": `Tree of ${volume.name}`, style: `max-width:${wide}px` });
  for (const edge of tree.edges) {
    const [from, to] = [at(edge.from), at(edge.to)];
    const [x, middle] = [from.x + BOX.width, (from.x + BOX.width + to.x) / 2];
    const path = `M${x},${from.y} C${middle},${from.y} ${middle},${to.y} ${to.x},${to.y}`;
    svg.append(element("path", { d: path, "stroke-width": width(edge.load, most), class: edge.load.bytes > 0 ? "" : "idle" }));
    const [first, second] = words(edge.load);
    svg.append(element("text", { x: to.x - 8, y: to.y - 9, "text-anchor": "end", class: "small" }, first));
    svg.append(element("text", { x: to.x - 8, y: to.y + 18, "text-anchor": "end", class: "small" }, second));
  }
  tree.nodes.forEach((node, number) => {
    const { x, y } = at(number);
    const isLast = node.column === tree.columns - 1;
    const box = BOX.width + (isLast ? 60 : 0);
    svg.append(
      element(
        "g",
        { class: node.lost ? "lost" : "" },
        element("title", {}, `${node.title}: ${node.note}`),
        element("rect", { x, y: y - BOX.height / 2, width: box, height: BOX.height, rx: 6 }),
        element("text", { x: x + 9, y: y - 3 }, clipped(node.title, isLast ? 28 : 20)),
        element("text", { x: x + 9, y: y + 13, class: "small" }, clipped(node.note, isLast ? 32 : 24)),
      ),
    );
  });
  return svg;
}

/** Requests a second and requests under way of the last minute. */
function lines(name: string): Element {
  const all = past.map((status) => status.volumes.find((volume) => volume.name === name));
  const rates = all.map((volume) => volume?.iops ?? 0);
  const depths = all.map((volume) => volume?.queue_depth ?? 0);
  const line = (values: number[], name: string): Element => {
    const most = Math.max(...values, 1);
    const points = values.map((value, place) => `${(420 * (KEPT - values.length + place)) / KEPT},${(62 - 46 * (value / most)).toFixed(1)}`);
    return element("polyline", { points: points.join(" "), class: name });
  };
  const [rate, depth] = [Math.max(...rates, 0), Math.max(...depths, 0)];
  return element(
    "svg",
    { class: "past", viewBox: "0 0 420 82", role: "img", "aria-label": `Last minute of ${name}` },
    element("text", { x: 0, y: 11, class: "small" }, `up to ${short(rate)} requests/s; dashed: up to ${depth} under way`),
    line(rates, "rate"),
    line(depths, "depth"),
    element("text", { x: 0, y: 78, class: "small" }, "a minute ago"),
    element("text", { x: 420, y: 78, "text-anchor": "end", class: "small" }, "now"),
  );
}

const lost = (part: Part): number => (isLeg(part) ? Number(part.state === "lost") : part.below.reduce((sum, below) => sum + lost(below), 0));

function section(volume: Volume): Element {
  const facts: (Element | string)[] = [`${short(volume.iops)} requests/s, ${volume.queue_depth} under way`];
  if (volume.failed > 0) facts.push(", ", element("span", { class: "failed" }, `${volume.failed} failed`));
  const gone = lost(volume.tree);
  if (gone > 0) facts.push(", ", element("span", { class: "failed" }, `${gone} ${gone === 1 ? "leg" : "legs"} lost`));
  if (volume.versions && volume.versions.length > 0) facts.push(`, versions in slots ${volume.versions.join(", ")}`);
  if (volume.rebuild && volume.rebuild.left_blocks > 0) {
    const share = Math.floor(100 * volume.rebuild.share);
    facts.push(", copies:", element("progress", { value: volume.rebuild.share, max: 1 }), `${share} %, ${short(volume.rebuild.left_blocks)} blocks left`);
  }
  return element("section", { class: "volume" }, element("h2", {}, volume.name), element("span", { class: "facts" }, ...facts), drawing(volume), lines(volume.name));
}

function show(link: string, isLost: boolean): void {
  const newest = past.at(-1);
  const head = element("div", { class: "top" }, element("div", { class: "title" }, element("h1", {}, "Volumes")), element("span", { class: isLost ? "link lost" : "link" }, link));
  main?.classList.toggle("stale", isLost);
  main?.replaceChildren(head, ...(newest?.volumes ?? []).map(section));
}

let heard = performance.now();

function follow(): void {
  const source = new EventSource("events");
  source.addEventListener("history", (event) => {
    past = JSON.parse(event.data as string) as Status[];
    heard = performance.now();
    show("live", false);
  });
  source.addEventListener("message", (event) => {
    past = [...past, JSON.parse(event.data as string) as Status].slice(-KEPT);
    heard = performance.now();
    show("live", false);
  });
  source.addEventListener("error", () => {
    show("the server does not answer; trying again", true);
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 1000);
  });
}

setInterval(() => {
  if (performance.now() - heard > STALE_MS) show("nothing was heard for some seconds", true);
}, 1000);
show("connecting", false);
follow();
