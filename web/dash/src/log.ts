// What happened, newest first.

import { element } from "../../report/src/dom.ts";
import type { EventKind, LiveEvent } from "./schema.ts";

const SIGNS: Record<EventKind, string> = { lost: "▼", back: "▲", lending: "⇄", connection: "●", setting: "◆" };

export class Log {
  readonly place = element("ol", { class: "log", tabindex: 0, "aria-label": "Events, newest first" });
  private newest = -1;
  private length = 0;

  show(events: readonly LiveEvent[]): void {
    const newest = events.at(-1)?.number ?? -1;
    if (newest === this.newest && events.length === this.length) return;
    [this.newest, this.length] = [newest, events.length];
    const lines = [...events].reverse().map(({ time_seconds, kind, text }) =>
      element("li", { "data-kind": kind }, element("time", {}, `${time_seconds.toFixed(2)}\u00a0s`), element("span", { class: kind, "aria-hidden": "true" }, SIGNS[kind] ?? "●"), element("span", {}, text)),
    );
    this.place.replaceChildren(...(lines.length > 0 ? lines : [element("li", {}, element("time"), element("span"), element("span", {}, "Nothing happened yet."))]));
  }
}
