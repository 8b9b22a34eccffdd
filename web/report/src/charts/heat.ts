// One figure of every drive over time: a row a drive, a column a span of time, darker is more.

import { axis, chart, shortened, tip, tooltip } from "../chart.ts";
import type { Option, Theme } from "../chart.ts";
import { RAMP } from "../colours.ts";
import { mark, percent, seconds } from "../format.ts";
import type { ShareSeries } from "../metrics.ts";
import type { Design } from "../page.ts";
import { intervals, rebinned, roundMarks, spans } from "../shape.ts";

/** More cells than this make the page slow without showing more. */
const CELLS_MAX = 24_000;
const COLUMNS_MAX = 240;
/** Stands out from every colour of the ramp. */
const MEASURED = "#f26d21";

/** `small` draws one of many for print: fewer columns, no scale. Marks of time stand below the column that they fall into. */
export function heatMap(design: Design, metric: ShareSeries, small: boolean): HTMLElement {
  const { timeline } = design.detail;
  const rows = metric.rows(timeline);
  const row = small ? (rows.length > 40 ? 3 : 9) : rows.length > 50 ? 8 : rows.length > 24 ? 12 : 22;
  const height = Math.max(small ? 70 : 120, rows.length * row + (small ? 30 : 76));
  const columns = spans(timeline.begin_seconds.length, small ? Math.min(60, Math.max(12, 900 / rows.length)) : Math.min(COLUMNS_MAX, CELLS_MAX / rows.length));
  const times = intervals(timeline);
  const values = rows.map((one) => rebinned(one.values, columns));
  const begin = (column: number): number => times[columns[column]?.[0] ?? 0]?.[0] ?? 0;
  const end = (column: number): number => times[(columns[column]?.[1] ?? 1) - 1]?.[1] ?? timeline.end_seconds;
  const marks = new Map(roundMarks(timeline.end_seconds).map((time) => [columns.findIndex((_, column) => end(column) > time), mark(seconds(time))]));
  const label = `${metric.name} of each drive of ${design.name} over time`;
  return chart(label, height, (theme) => ({
    grid: { left: 8, right: 12, top: small ? 6 : 50, bottom: 2, containLabel: true },
    tooltip: {
      ...tooltip(theme),
      formatter: (hit) => {
        const [column, drive, value] = (Array.isArray(hit) ? [] : hit.value) as [number?, number?, (number | string)?];
        if (column === undefined || drive === undefined) return "";
        const text = typeof value === "number" ? percent(value) : metric.none;
        return tip(rows[drive]?.name ?? "", [
          { name: metric.name, value: text },
          { name: "from", value: seconds(begin(column)) },
          { name: "to", value: seconds(end(column)) },
        ]);
      },
    },
    ...axes(theme, small, rows.map((one) => one.name), columns.length, marks),
    visualMap: {
      type: "continuous",
      show: !small,
      hoverLink: false,
      min: 0,
      max: 1,
      dimension: 2,
      orient: "horizontal",
      left: 8,
      top: 0,
      itemWidth: 12,
      itemHeight: 160,
      text: ["100 %", "0 %"],
      formatter: (value) => percent(Number(value)),
      textStyle: { color: theme.ink, fontSize: theme.fontSize },
      inRange: { color: theme.dark ? RAMP.dark : RAMP.light },
    },
    series: [
      {
        type: "heatmap",
        progressive: 0,
        itemStyle: { borderWidth: 0 },
        emphasis: { itemStyle: { borderColor: theme.ink, borderWidth: 1 } },
        data: values.flatMap((figures, drive) => figures.flatMap((value, column) => (value === null ? [] : [[column, drive, value]]))),
        ...measuredLine(theme, small, timeline.measured_from_seconds, columns.findIndex((_, column) => end(column) > timeline.measured_from_seconds)),
      },
    ],
  }));
}

function axes(theme: Theme, small: boolean, names: string[], columns: number, marks: ReadonlyMap<number, string>): Pick<Option, "xAxis" | "yAxis"> {
  const size = small ? Math.min(8, theme.fontSize) : names.length > 24 ? 9 : theme.fontSize;
  return {
    xAxis: { type: "category", data: Array.from({ length: columns }, (_, column) => String(column)), ...axis(theme), axisTick: { show: false }, axisLabel: { ...axis(theme).axisLabel, fontSize: size, hideOverlap: true, interval: (column: number) => marks.has(column), formatter: (_: string, column: number) => marks.get(column) ?? "" }, splitLine: { show: false } },
    yAxis: {
      type: "category",
      inverse: true,
      data: names,
      ...axis(theme),
      axisTick: { show: false },
      axisLabel: { ...axis(theme).axisLabel, fontSize: size, interval: names.length > 40 ? (small ? 19 : 4) : 0, formatter: (name: string) => shortened(name, small ? 10 : 18) },
      splitLine: { show: false },
    },
  };
}

/** A line where warm-up ends. */
function measuredLine(theme: Theme, small: boolean, from: number, column: number) {
  if (from <= 0 || column <= 0) return {};
  return {
    markLine: {
      silent: true,
      symbol: "none",
      lineStyle: { color: MEASURED, width: 1.5, type: "solid" as const },
      label: { show: !small, formatter: "warm-up ends", color: theme.ink, fontSize: theme.fontSize, position: "start" as const },
      data: [{ xAxis: column }],
    },
  };
}
