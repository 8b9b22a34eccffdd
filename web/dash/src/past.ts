// What the page remembers: snapshots of the last minute, fine steps of the last seconds, events. Tested without a
// browser.

import type { Figure } from "../../report/src/schema.ts";
import type { DrivePoints, DriveSnapshot, LiveEvent, Snapshot } from "./schema.ts";

/** Simulated seconds that are remembered. */
export const MINUTE = 60;
/** Simulated seconds of which fine steps are remembered. */
export const MOMENT = 2;
const EVENTS_MAX = 300;
/** Snapshots whose fine steps are remembered at most; a slow pace has many in a moment. */
const FINE_MAX = 1000;
/** Snapshots closer than this, in simulated seconds, share a place; a slow pace would fill the memory else. */
const NEAR = 0.05;

/** A value over a span of simulated time. */
export interface Span {
  from: number;
  to: number;
  value: Figure;
}

export class Past {
  snapshots: Snapshot[] = [];
  events: LiveEvent[] = [];
  private fine: Snapshot["points"][] = [];

  get latest(): Snapshot | undefined {
    return this.snapshots.at(-1);
  }

  /** Simulated time of the latest snapshot. */
  get end(): number {
    return this.latest?.time_seconds ?? 0;
  }

  clear(): void {
    [this.snapshots, this.events, this.fine] = [[], [], []];
  }

  /** Takes a snapshot; one that is older than the latest begins another run, the same again changes nothing. */
  add(snapshot: Snapshot): void {
    const latest = this.latest;
    if (latest && snapshot.number === latest.number) return;
    if (latest && (snapshot.number < latest.number || snapshot.time_seconds < latest.time_seconds)) this.clear();
    const before = this.snapshots.at(-2);
    if (before && latest && latest.time_seconds - before.time_seconds < NEAR) this.snapshots.pop();
    this.snapshots.push(snapshot);
    // The server repeats events, so that those of skipped snapshots are not lost.
    const known = this.events.at(-1)?.number ?? -1;
    this.events.push(...snapshot.events.filter((event) => event.number > known));
    this.events.splice(0, this.events.length - EVENTS_MAX);
    // Steps without a length are those of a moment in which no time passed.
    if (snapshot.points.drives.length > 0 && snapshot.points.step_seconds > 0) this.fine.push(snapshot.points);
    const [oldest, finest] = [snapshot.time_seconds - MINUTE - 1, snapshot.time_seconds - MOMENT - 0.5];
    this.snapshots.splice(0, this.snapshots.findIndex((one) => one.time_seconds >= oldest));
    // Of a fast pace even the newest steps begin before that: they alone are left.
    const first = this.fine.findIndex((one) => one.begin_seconds >= finest);
    this.fine.splice(0, Math.max(0, first < 0 ? this.fine.length - 1 : first, this.fine.length - FINE_MAX));
  }

  /** A figure of a drive in equal bins that end now; bins begin at multiples of their length, so that they keep still. */
  binned(drive: number, seconds: number, bins: number, figure: (drive: DriveSnapshot) => Figure, join: "mean" | "most"): Span[] {
    const length = seconds / bins;
    const first = Math.ceil((this.end - seconds) / length);
    const made: Span[] = Array.from({ length: bins + 1 }, (_, bin) => ({ from: (first + bin - 1) * length, to: (first + bin) * length, value: null }));
    const counts = made.map(() => 0);
    for (const snapshot of this.snapshots) {
      const one = snapshot.drives[drive];
      const value = one ? figure(one) : null;
      // A snapshot ends its interval.
      const at = Math.ceil(snapshot.time_seconds / length - 1e-9) - first;
      const span = made[at];
      if (!span || value === null) continue;
      const count = (counts[at] = (counts[at] ?? 0) + 1);
      span.value = span.value === null ? value : join === "most" ? Math.max(span.value, value) : span.value + (value - span.value) / count;
    }
    return made;
  }

  /** A figure of a drive in the fine steps of the last moment. */
  steps(drive: number, figure: (points: DrivePoints) => readonly Figure[]): Span[] {
    return this.fine.flatMap((points) => {
      const series = points.drives[drive];
      return (series ? figure(series) : []).map((value, step) => {
        const from = points.begin_seconds + step * points.step_seconds;
        return { from, to: from + points.step_seconds, value };
      });
    });
  }

  /** Simulated seconds that passed in a second of the wall clock, over the last two; null at the beginning. */
  measuredPace(): Figure {
    const [last, first] = [this.latest, this.snapshots.findLast((one) => (this.latest?.wall_seconds ?? 0) - one.wall_seconds >= 2)];
    if (!last || !first || last.wall_seconds <= first.wall_seconds) return null;
    return (last.time_seconds - first.time_seconds) / (last.wall_seconds - first.wall_seconds);
  }

  /** Greatest value of a figure over all drives and snapshots that are remembered. */
  greatest(figure: (drive: DriveSnapshot) => number): number {
    return this.snapshots.reduce((most, snapshot) => snapshot.drives.reduce((all, drive) => Math.max(all, figure(drive)), most), 0);
  }
}

/** The next of 1, 2, 5, 10 … times a power of ten, so that an axis does not change with every snapshot. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 3, 4, 5, 6, 8, 10].find((factor) => value <= factor * power * 1.0001) ?? 10);
}
