// A chart that is drawn again and again: on canvas, because that is cheaper for a picture that never stands still.

import { CustomChart, LinesChart } from "echarts/charts";
import type { BarSeriesOption, CustomSeriesOption, HeatmapSeriesOption, LineSeriesOption, LinesSeriesOption } from "echarts/charts";
import type { GridComponentOption, TooltipComponentOption, VisualMapComponentOption } from "echarts/components";
import { init, use } from "echarts/core";
import type { ComposeOption, EChartsType } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { theme } from "../../report/src/chart.ts";
import type { Theme } from "../../report/src/chart.ts";
import { element } from "../../report/src/dom.ts";

use([CustomChart, LinesChart, CanvasRenderer]);

export type LiveOption = ComposeOption<
  BarSeriesOption | CustomSeriesOption | HeatmapSeriesOption | LineSeriesOption | LinesSeriesOption | GridComponentOption | TooltipComponentOption | VisualMapComponentOption
>;

const all = new Set<LiveChart>();

export class LiveChart {
  readonly place: HTMLElement;
  private chart: EChartsType | undefined;
  private look: Theme | undefined;
  private drawn = { width: 0, height: 0 };

  /** `label` tells those who do not see it what it shows; `height` is in pixels. */
  constructor(label: string, private height: number) {
    this.place = element("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
    all.add(this);
  }

  /** Draws what `option` gives. What it leaves out stays as it was, but for the series, which are matched by place. */
  draw(option: (theme: Theme) => LiveOption): void {
    const width = this.place.clientWidth;
    if (width === 0) return;
    if (!this.chart) {
      this.chart = init(this.place, null, { renderer: "canvas", width, height: this.height });
      this.drawn = { width, height: this.height };
    } else if (this.drawn.width !== width || this.drawn.height !== this.height) {
      this.chart.resize({ width, height: this.height });
      this.drawn = { width, height: this.height };
      this.look = undefined;
    }
    this.look ??= theme(width);
    this.chart.setOption({ animation: false, textStyle: { fontFamily: getComputedStyle(this.place).fontFamily }, ...option(this.look) });
  }

  /** Another height in pixels, from the next drawing on. */
  resize(height: number): void {
    this.height = height;
    this.place.style.height = `${height}px`;
  }

  forget(): void {
    this.look = undefined;
  }

  dispose(): void {
    this.chart?.dispose();
    all.delete(this);
  }
}

/** Colours have changed: every chart reads them again when it is drawn next. */
export function forgetThemes(): void {
  for (const chart of all) chart.forget();
}
