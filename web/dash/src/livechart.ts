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
const visible = new Set<Element>();
let seen = (): void => {};
const sight = new IntersectionObserver(
  (changes) => {
    for (const { target, isIntersecting } of changes) {
      if (isIntersecting) visible.add(target);
      else visible.delete(target);
    }
    if (changes.some((change) => change.isIntersecting)) seen();
  },
  { rootMargin: "120px" },
);

export class LiveChart {
  readonly place: HTMLElement;
  private chart: EChartsType | undefined;
  private look: Theme | undefined;
  private drawn = { width: 0, height: 0 };
  private shape = "";

  /** `label` tells those who do not see it what it shows; `height` is in pixels. */
  constructor(label: string, private height: number) {
    this.place = element("div", { class: "chart", role: "img", "aria-label": label, style: `height:${height}px` });
    all.add(this);
    sight.observe(this.place);
  }

  /** Whether it is on the screen; what is not need not be drawn again. */
  private get seen(): boolean {
    return visible.has(this.place);
  }

  /**
   * Draws what `option` gives; what it leaves out stays as it was. It is asked for the whole picture at first, and when
   * size, colours or `shape` have changed; else for what moves.
   */
  draw(shape: string, option: (theme: Theme, whole: boolean) => LiveOption): void {
    const width = this.place.clientWidth;
    if (width === 0 || (this.chart && !this.seen)) return;
    if (!this.chart) {
      this.chart = init(this.place, null, { renderer: "canvas", width, height: this.height });
      this.drawn = { width, height: this.height };
    } else if (this.drawn.width !== width || this.drawn.height !== this.height) {
      this.chart.resize({ width, height: this.height });
      this.drawn = { width, height: this.height };
      this.look = undefined;
    }
    const whole = this.look === undefined || shape !== this.shape;
    this.shape = shape;
    this.look ??= theme(width);
    const general = whole ? { animation: false, textStyle: { fontFamily: getComputedStyle(this.place).fontFamily } } : {};
    this.chart.setOption({ ...general, ...option(this.look, whole) });
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
    sight.unobserve(this.place);
    visible.delete(this.place);
    all.delete(this);
  }
}

/** Registers what is done when a chart comes into sight. */
export function whenSeen(then: () => void): void {
  seen = then;
}

/** Colours have changed: every chart reads them again when it is drawn next. */
export function forgetThemes(): void {
  for (const chart of all) chart.forget();
}
