// A row for every drive: state and button, throughput, latency, what is busy.

import { element } from "../../report/src/dom.ts";
import { bytesPerSecond, count, digits, latency, perSecond, percent } from "../../report/src/format.ts";
import type { Figure } from "../../report/src/schema.ts";
import { PERCENTILES, READ, WRITE } from "./colours.ts";
import { LiveChart } from "./livechart.ts";
import { Past, roundUp } from "./past.ts";
import { latencies, strips, throughput } from "./rowcharts.ts";
import type { View } from "./rowcharts.ts";
import { READ_ONLY } from "./top.ts";
import type { Command, DriveSnapshot, DriveState } from "./schema.ts";

const CHART = 62;
const STATES: Record<DriveState, string> = { ready: "● serves", away: "▲ pulled out", off: "▲ no power", unlinked: "▲ no link", resetting: "◐ coming back" };
/** A button waits so long for its effect before it can be pressed again. */
const PATIENCE_MS = 3000;

export type Order = (command: Command) => Promise<string | null>;

interface Row {
  name: string;
  state: DriveState | "";
  row: HTMLElement;
  badge: HTMLElement;
  button: HTMLButtonElement;
  facts: HTMLElement;
  now: [HTMLElement, HTMLElement];
  charts: [LiveChart, LiveChart, LiveChart];
}

export class Board {
  readonly place = element("section", { class: "board", "aria-label": "Drives" });
  private rows: Row[] = [];
  private readonly view: View = viewOf(new Past(), "minute");
  private readonly spans = [element("span"), element("span"), element("span")];
  private readonly mean = element("span", { class: "key", hidden: true }, element("i", { style: "--hue:var(--ink)" }), "mean of 10 ms");

  constructor(
    private readonly order: Order,
    private readonly may: boolean,
  ) {
    this.place.append(this.head());
  }

  /** Makes rows for the drives that there are. */
  private match(drives: readonly DriveSnapshot[]): void {
    if (drives.length === this.rows.length && drives.every((drive, index) => drive.name === this.rows[index]?.name)) return;
    for (const row of this.rows) {
      for (const chart of row.charts) chart.dispose();
      row.row.remove();
    }
    this.rows = drives.map((drive) => this.row(drive));
    this.place.append(...this.rows.map((row) => row.row));
  }

  private row(drive: DriveSnapshot): Row {
    const { name } = drive;
    const charts: Row["charts"] = [new LiveChart(`Throughput of ${name}`, CHART), new LiveChart(`Latency of ${name}`, CHART), new LiveChart(`Utilization of ${name}`, CHART + 20)];
    const [badge, button, facts] = [element("span", { class: "state" }), element("button", { type: "button" }), element("p", { class: "facts" })];
    const now: Row["now"] = [element("p", { class: "now" }), element("p", { class: "now" })];
    const row = element(
      "div",
      { class: "drive", "data-drive": name },
      element("div", {}, element("div", { class: "name" }, element("b", { title: drive.nqn === "" ? name : `${name}, ${drive.nqn}` }, name), badge, button), facts),
      element("div", {}, now[0], charts[0].place),
      element("div", {}, now[1], charts[1].place),
      element("div", {}, charts[2].place),
    );
    const made: Row = { name, state: "", row, badge, button, facts, now, charts };
    button.addEventListener("click", () => void this.press(made));
    return made;
  }

  private async press(row: Row): Promise<void> {
    const { state } = row;
    row.button.disabled = true;
    const refused = await this.order({ command: state === "away" ? "insert" : "pull", drive: row.name });
    // The snapshot that shows the effect makes it another button.
    setTimeout(() => (row.button.disabled = false), refused === null ? PATIENCE_MS : 0);
  }

  /** Figures as text; called with every snapshot. */
  show(drives: readonly DriveSnapshot[]): void {
    this.match(drives);
    drives.forEach((drive, index) => {
      const row = this.rows[index];
      if (row) this.figures(row, drive);
    });
  }

  private figures(row: Row, drive: DriveSnapshot): void {
    if (row.state !== drive.state) {
      row.state = drive.state;
      row.badge.textContent = STATES[drive.state] ?? drive.state;
      row.badge.className = `state ${drive.state}`;
      row.row.classList.toggle("gone", drive.state === "away" || drive.state === "off" || drive.state === "unlinked");
      const away = drive.state === "away";
      row.button.textContent = away ? "Put back" : "Pull out";
      row.button.className = away ? "" : "danger";
      row.button.setAttribute("aria-label", `${away ? "Put back" : "Pull out"} ${drive.name}`);
      row.button.disabled = !this.may;
      if (!this.may) row.button.title = READ_ONLY;
    }
    const rated = `wear ${worn(drive.wear_percent)} · spare ${worn(drive.spare_percent)}`;
    const missed = `${percent(drive.mapping_miss_ratio)} map misses`;
    const errors = element("span", { class: drive.media_errors > 0 ? "errors" : "" }, `${count(drive.media_errors)} media error${drive.media_errors === 1 ? "" : "s"}`);
    row.facts.replaceChildren(`${perSecond(drive.iops)} · ${drive.queue_depth} waiting · `, errors, element("br"), `${percent(drive.redirected_share)} redirected · ${missed}`, element("br"), rated);
    row.now[0].replaceChildren(...named("read", bytesPerSecond(drive.read_bytes_per_s)), ...named("written", bytesPerSecond(drive.write_bytes_per_s)));
    const served = (drive.iops ?? 0) > 0;
    row.now[1].replaceChildren(...PERCENTILES.flatMap(({ name, key }) => named(name, latency(served ? drive.latency_us[key] : null))));
  }

  /** Pictures; called less often. */
  draw(past: Past, window: View["window"]): void {
    const view = Object.assign(this.view, viewOf(past, window));
    const shape = [window, view.bytesMost, view.latencyLeast, view.latencyMost].join();
    this.mean.hidden = window === "minute";
    this.spans.forEach((span) => {
      span.replaceChildren(element("span", {}, window === "minute" ? "60 s ago" : "2 s ago"), element("span", {}, "now"));
    });
    this.rows.forEach((row, drive) => {
      row.charts[0].draw(shape, (theme, whole) => throughput(theme, view, drive, row.name, whole));
      row.charts[1].draw(shape, (theme, whole) => latencies(theme, view, drive, row.name, whole));
      row.charts[2].draw(window, (theme, whole) => strips(theme, view, drive, row.name, whole));
    });
  }

  private head(): HTMLElement {
    const key = (name: string, hue: { light: string; dark: string }, css: string): HTMLElement => {
      const swatch = element("i", { class: css, style: `--hue:light-dark(${hue.light},${hue.dark})` });
      return element("span", { class: "key" }, swatch, name);
    };
    const column = (title: string, span: number, ...keys: HTMLElement[]): HTMLElement => {
      const place = this.spans[span];
      if (place) place.className = "span";
      return element("div", {}, element("p", {}, element("b", {}, title), keys), place);
    };
    return element(
      "div",
      { class: "columns" },
      element("div", {}, element("p", {}, element("b", {}, "Drives"))),
      column("Throughput", 0, key("read", READ, "fill"), key("written", WRITE, "fill")),
      column("Latency", 1, ...PERCENTILES.map(({ name, hue, css }) => key(name, hue, css)), this.mean),
      column("Busy", 2, element("span", { class: "ramp" }, "0 %", element("span"), "100 %")),
    );
  }
}

const named = (name: string, value: string): HTMLElement[] => [element("span", {}, `${name}\u00a0`), element("b", {}, value)];

const worn = (value: Figure): string => (value === null ? "–" : `${digits(value)}\u00a0%`);

/** Axes that all rows share, so that drives can be compared. */
function viewOf(past: Past, window: View["window"]): View {
  const most = past.greatest((drive) => drive.latency_us.p999 ?? 0);
  const least = past.snapshots.reduce((all, snapshot) => snapshot.drives.reduce((low, drive) => ((drive.latency_us.p50 ?? 0) > 0 ? Math.min(low, drive.latency_us.p50 ?? low) : low), all), Infinity);
  const floor = 10 ** Math.floor(Math.log10(Number.isFinite(least) ? least : 10));
  return {
    past,
    window,
    bytesMost: roundUp(past.greatest((drive) => (drive.read_bytes_per_s ?? 0) + (drive.write_bytes_per_s ?? 0)) * 1.05),
    latencyLeast: floor,
    latencyMost: Math.max(floor * 10, 10 ** Math.ceil(Math.log10(Math.max(most, 1)) - 1e-9)),
  };
}
