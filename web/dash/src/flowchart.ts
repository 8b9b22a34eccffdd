// Who lends to whom, now: a row a drive on either side, bands from lenders to borrowers, as wide as what is lent.
// Rows keep their places; bands swell and shrink, and arrows on them say which way it goes.

import type { CustomSeriesOption } from "echarts/charts";
import { axis, shortened, tip, tooltip } from "../../report/src/chart.ts";
import type { Theme } from "../../report/src/chart.ts";
import { lenderHue } from "../../report/src/colours.ts";
import type { LentResource } from "../../report/src/schema.ts";
import { amounts, approach, bands, greatest, key, sums } from "./flows.ts";
import type { Amounts, Band } from "./flows.ts";
import { LiveChart } from "./livechart.ts";
import type { LiveOption } from "./livechart.ts";
import { roundUp } from "./past.ts";
import type { Past } from "./past.ts";
import type { Snapshot } from "./schema.ts";

const NODE = 7;
/** Part of the way that a band moves with every drawing. */
const PART = 0.4;
/** Milliseconds between drawings while bands move, and between those of the arrows. */
const FRAME = 80;
const ARROWS = 700;
const ROW = { most: 27, least: 15, height: 330 };

type RenderItem = NonNullable<CustomSeriesOption["renderItem"]>;

export class FlowChart {
  readonly chart: LiveChart;
  private readonly shown: Amounts = new Map();
  private target: Amounts = new Map();
  private full = 0;
  private names: string[] = [];
  private drawnAt = 0;
  private arrowsAt = 0;
  private moving = true;
  private readonly still = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(private readonly resource: LentResource, title: string, private readonly text: (amount: number) => string) {
    this.chart = new LiveChart(`${title}: bands from lenders on the left to borrowers on the right`, ROW.height);
  }

  /** Takes a snapshot in. The scale follows the most that one drive lent or borrowed in the last minute. */
  take(snapshot: Snapshot, past: Past): void {
    this.target = amounts(snapshot, this.resource);
    const most = past.snapshots.reduce((all, one) => Math.max(all, greatest(amounts(one, this.resource))), 0);
    const names = snapshot.drives.map((drive) => drive.name);
    const row = Math.max(ROW.least, Math.min(ROW.most, ROW.height / Math.max(1, names.length)));
    if (names.length !== this.names.length) this.chart.resize(Math.round(row * names.length + 8));
    [this.full, this.names, this.moving] = [roundUp(most), names, true];
  }

  /** What is lent now in all. */
  total(): number {
    return [...this.target.values()].reduce((all, one) => all + one.amount, 0);
  }

  /** Called with every frame of the screen; draws when there is something to show. */
  tick(now: number): void {
    if (!this.moving || now - this.drawnAt < FRAME) return;
    this.drawnAt = now;
    this.moving = approach(this.shown, this.target, this.still.matches ? 1 : PART, this.full);
    const drawn = bands(this.shown, this.full);
    const withArrows = now - this.arrowsAt >= ARROWS;
    if (withArrows) this.arrowsAt = now;
    this.chart.draw("", (theme) => this.option(theme, drawn, withArrows));
  }

  private option(theme: Theme, drawn: Band[], withArrows: boolean): LiveOption {
    const rows = this.names.map((_, row) => row);
    const [lent, borrowed] = [sums(this.shown, "lender"), sums(this.shown, "borrower")];
    // Bands are on their way; the figures are there already.
    const [lends, borrows] = [sums(this.target, "lender"), sums(this.target, "borrower")];
    const nodes = [...[...lent].map(([row, amount]) => ({ side: 0, row, amount })), ...[...borrowed].map(([row, amount]) => ({ side: 1, row, amount }))];
    const scale = this.full > 0 ? 0.86 / this.full : 0;
    const hue = (lender: number): string => theme.hue(lenderHue(lender));
    const side = Math.min(170, Math.max(96, theme.width * 0.27));
    const labels = (total: Map<number, number>, position: "left" | "right") => ({
      type: "value" as const,
      position,
      inverse: true,
      min: -0.5,
      max: Math.max(0, rows.length - 1) + 0.5,
      axisLine: { show: false },
      axisTick: { show: false },
      splitLine: { show: false },
      axisLabel: {
        ...axis(theme).axisLabel,
        customValues: rows,
        margin: NODE + 5,
        fontSize: rows.length > 16 ? 10 : 12,
        color: (value?: string | number) => (total.has(Number(value)) ? theme.ink : theme.muted),
        formatter: (value: number) => {
          const [name, amount] = [shortened(this.names[value] ?? "", 12), total.get(value)];
          if (amount === undefined) return name;
          return position === "left" ? `${this.text(amount)}  {name|${safe(name)}}` : `{name|${safe(name)}}  ${this.text(amount)}`;
        },
        rich: { name: { fontWeight: "bold" as const, fontSize: rows.length > 16 ? 10 : 12, color: theme.ink } },
      },
    });
    return {
      grid: { left: side, right: side, top: 4, bottom: 4 },
      xAxis: { type: "value", min: 0, max: 1, show: false },
      yAxis: [labels(lends, "left"), labels(borrows, "right")],
      tooltip: {
        ...tooltip(theme),
        formatter: (hit) => {
          const one = Array.isArray(hit) ? undefined : hit;
          if (one?.seriesIndex === 0) {
            const band = drawn[one.dataIndex];
            return band ? tip(`${this.names[band.lender]} to ${this.names[band.borrower]}`, [{ colour: hue(band.lender), name: "lends now", value: this.text(this.target.get(key(band.lender, band.borrower))?.amount ?? 0) }]) : "";
          }
          const node = nodes[one?.dataIndex ?? -1];
          return node ? tip(this.names[node.row] ?? "", [{ name: node.side === 0 ? "lends now" : "borrows now", value: this.text((node.side === 0 ? lends : borrows).get(node.row) ?? 0) }]) : "";
        },
      },
      series: [
        { type: "custom", data: drawn.map((band) => [0, band.from[0], band.from[1], band.to[0], band.to[1]]), encode: { x: 0, y: [1, 2, 3, 4] }, clip: false, renderItem: ribbon((index) => hue(drawn[index]?.lender ?? 0), theme.dark ? 0.62 : 0.55) },
        { type: "custom", data: nodes.map(({ side: at, row, amount }) => [at, row - (amount * scale) / 2, row + (amount * scale) / 2]), clip: false, renderItem: node((index) => (nodes[index]?.side === 0 ? hue(nodes[index].row) : theme.muted)) },
        ...(withArrows ? [this.arrows(theme, drawn)] : []),
      ],
    };
  }

  /** Arrows that wander along the middle of each band that is wide enough to carry one. */
  private arrows(theme: Theme, drawn: readonly Band[]) {
    const carrying = this.still.matches ? [] : drawn.filter((band) => band.to[1] - band.to[0] > 0.06);
    return {
      type: "lines" as const,
      coordinateSystem: "cartesian2d" as const,
      zlevel: 1,
      polyline: true,
      silent: true,
      clip: false,
      lineStyle: { width: 0, opacity: 0 },
      effect: { show: true, period: 2.6, symbol: "arrow", symbolSize: 7, color: theme.ink, trailLength: 0, loop: true },
      data: carrying.map((band) => ({ coords: path((band.from[0] + band.from[1]) / 2, (band.to[0] + band.to[1]) / 2) })),
    };
  }
}

/** Braces begin a style in labels. */
const safe = (name: string): string => name.replace(/[{}|]/g, " ");

/** Points on the curve that a band follows, from `y` to `to`. */
function path(y: number, to: number): [number, number][] {
  const steps = 14;
  return Array.from({ length: steps + 1 }, (_, step) => {
    const t = step / steps;
    // A cubic Bézier curve with both handles at the middle.
    const x = 1.5 * t * (1 - t) ** 2 + 1.5 * t ** 2 * (1 - t) + t ** 3;
    return [x, y + (to - y) * (3 * t ** 2 - 2 * t ** 3)];
  });
}

const ribbon = (colour: (index: number) => string, opacity: number): RenderItem => (parameters, api) => {
  const [top, bottom, endTop, endBottom] = [1, 2, 3, 4].map((place) => Number(api.value(place))) as [number, number, number, number];
  const point = (x: number, y: number): [number, number] => api.coord([x, y]) as [number, number];
  const [[x, y0], [, y1], [to, z0], [, z1]] = [point(0, top), point(0, bottom), point(1, endTop), point(1, endBottom)];
  const half = (x + to) / 2;
  const pathData = `M${x},${y0}C${half},${y0} ${half},${z0} ${to},${z0}L${to},${z1}C${half},${z1} ${half},${y1} ${x},${y1}Z`;
  return { type: "path", shape: { pathData }, style: { fill: colour(parameters.dataIndex), opacity }, emphasis: { style: { opacity: 0.95 } } };
};

const node = (colour: (index: number) => string): RenderItem => (parameters, api) => {
  const left = Number(api.value(0)) === 0;
  const [x, top] = api.coord([api.value(0), api.value(1)]) as [number, number];
  const bottom = api.coord([api.value(0), api.value(2)])[1] ?? top;
  return { type: "rect", shape: { x: left ? x - NODE : x, y: top, width: NODE, height: Math.max(1, bottom - top) }, style: { fill: colour(parameters.dataIndex) } };
};
