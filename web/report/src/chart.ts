// The life of a chart: drawn when its place is in the page, drawn again when width or colours change.

import { BarChart, HeatmapChart, LineChart, SankeyChart, ScatterChart } from "echarts/charts";
import type { BarSeriesOption, HeatmapSeriesOption, LineSeriesOption, SankeySeriesOption, ScatterSeriesOption } from "echarts/charts";
import { GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent, VisualMapComponent } from "echarts/components";
import type { GridComponentOption, LegendComponentOption, TooltipComponentOption, VisualMapComponentOption } from "echarts/components";
import { init, use } from "echarts/core";
import type { ComposeOption, EChartsType } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import type { Hue } from "./colours.ts";
import { element } from "./dom.ts";
import { mark } from "./format.ts";

use([
  BarChart, HeatmapChart, LineChart, SankeyChart, ScatterChart,
  GridComponent, LegendComponent, MarkAreaComponent, MarkLineComponent, TooltipComponent, VisualMapComponent,
  SVGRenderer,
]);

export type Option = ComposeOption<
  | BarSeriesOption | HeatmapSeriesOption | LineSeriesOption | SankeySeriesOption | ScatterSeriesOption
  | GridComponentOption | LegendComponentOption | TooltipComponentOption | VisualMapComponentOption
>;

/** Colours and sizes of the moment, read from the style sheet so that page and charts agree. */
export interface Theme {
  dark: boolean;
  printing: boolean;
  ink: string;
  muted: string;
  line: string;
  surface: string;
  fontSize: number;
  /** Width of the chart in pixels. */
  width: number;
  hue(hue: Hue): string;
}

interface Entry {
  place: HTMLElement;
  height: number;
  option: (theme: Theme) => Option;
  chart?: EChartsType;
}

const entries = new Set<Entry>();

/**
 * A place for a chart; `drawCharts` draws it once it is in the page.
 * `label` tells those who do not see it what it shows; `height` is in pixels.
 */
export function chart(label: string, height: number, option: (theme: Theme) => Option): HTMLElement {
  const place = element("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
  entries.add({ place, height, option });
  return place;
}

/** A chart with a caption above it, kept together in print. */
export function captioned(title: string, ...content: Node[]): HTMLElement {
  return element("figure", {}, element("figcaption", {}, title), ...content);
}

/** Draws every chart that is in the page: new ones, and with `again` those that are drawn already. */
export function drawCharts(again = false): void {
  for (const entry of entries) {
    if (!entry.place.isConnected) {
      entry.chart?.dispose();
      entries.delete(entry);
    } else if (again || !entry.chart) {
      draw(entry);
    }
  }
}

function draw(entry: Entry): void {
  const width = entry.place.clientWidth;
  if (width === 0) return;
  entry.chart?.dispose();
  entry.chart = init(entry.place, null, { renderer: "svg", width, height: entry.height });
  entry.chart.setOption({ animation: false, textStyle: { fontFamily: getComputedStyle(entry.place).fontFamily }, ...entry.option(theme(width)) });
  // Drawing normally waits for the next frame; print does not.
  entry.chart.getZr().flush();
}

export function theme(width: number): Theme {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string): string => style.getPropertyValue(name).trim();
  const dark = value("--scheme") === "dark";
  const printing = document.documentElement.classList.contains("printing");
  return {
    dark,
    printing,
    ink: value("--ink"),
    muted: value("--muted"),
    line: value("--line"),
    surface: value("--surface"),
    fontSize: printing ? 10 : 12,
    width,
    hue: (hue) => (dark ? hue.dark : hue.light),
  };
}

/** Lines of a tooltip: a title, then name and value, with the colour of the mark. */
export interface TipLine {
  colour?: string;
  name: string;
  value: string;
}

/** A tooltip as elements: names come from the report and must not be read as markup. */
export function tip(title: string, lines: readonly TipLine[]): HTMLElement {
  const rows = lines.map(({ colour, name, value }) =>
    element(
      "tr",
      {},
      element("td", {}, element("span", { class: "swatch", style: `background:${colour ?? "transparent"}` }), name),
      element("td", {}, value),
    ),
  );
  return element("div", { class: "tip" }, element("strong", {}, title), element("table", {}, element("tbody", {}, rows)));
}

/** What all tooltips share. */
export function tooltip(theme: Theme): TooltipComponentOption {
  return {
    confine: true,
    backgroundColor: theme.surface,
    borderColor: theme.line,
    textStyle: { color: theme.ink, fontSize: 12 },
    transitionDuration: 0,
    extraCssText: "max-height:70vh;overflow:hidden",
  };
}

/** What all axes share. */
export function axis(theme: Theme) {
  return {
    axisLine: { lineStyle: { color: theme.muted } },
    axisTick: { lineStyle: { color: theme.muted } },
    axisLabel: { color: theme.ink, fontSize: theme.fontSize },
    splitLine: { lineStyle: { color: theme.line } },
    nameTextStyle: { color: theme.muted, fontSize: theme.fontSize },
  };
}

/** An axis of values; `text` writes its marks. */
export function valueAxis(theme: Theme, text: (value: number) => string) {
  const plain = axis(theme);
  return { ...plain, axisLabel: { ...plain.axisLabel, hideOverlap: true, formatter: (value: number) => mark(text(value)) } };
}

/** A legend above the chart, in as many rows as it takes. */
export function legend(theme: Theme, names: readonly string[]): LegendComponentOption {
  return {
    show: names.length > 1,
    top: 0,
    left: 0,
    data: [...names],
    itemWidth: 22,
    itemHeight: 10,
    textStyle: { color: theme.ink, fontSize: theme.fontSize },
    // A name of a report may be long.
    formatter: (name: string) => shortened(name, 28),
  };
}

/** Height of the legend with room below it, for the width that the names will take. */
export function legendHeight(theme: Theme, names: readonly string[]): number {
  if (names.length < 2) return 12;
  let [rows, taken] = [1, 0];
  for (const name of names) {
    // A letter is about 0.62 of the font's size wide; swatch and gaps take 40 pixels.
    const width = 40 + 0.62 * theme.fontSize * Math.min(28, name.length);
    if (taken > 0 && taken + width > theme.width) [rows, taken] = [rows + 1, 0];
    taken += width;
  }
  return 12 + 24 * rows;
}

/** At most `length` characters. */
export function shortened(name: string, length: number): string {
  return name.length <= length ? name : `${name.slice(0, length - 1)}…`;
}
