// The figures of the whole enclosure, at the top of the page.

import { element } from "../../report/src/dom.ts";
import { NONE, bytes, bytesPerSecond, cores, count, latency, mebibytes, perSecond, ratio } from "../../report/src/format.ts";
import type { Figure } from "../../report/src/schema.ts";
import { amounts } from "./flows.ts";
import type { Past } from "./past.ts";
import type { DriveSnapshot, Snapshot } from "./schema.ts";

interface Tile {
  key: string;
  title: string;
  figure: (snapshot: Snapshot, past: Past) => string;
  more: (snapshot: Snapshot, past: Past) => string;
}

const total = (snapshot: Snapshot, figure: (drive: DriveSnapshot) => Figure): number => snapshot.drives.reduce((all, drive) => all + (figure(drive) ?? 0), 0);

const lent = (snapshot: Snapshot, resource: "processor" | "memory"): number => [...amounts(snapshot, resource).values()].reduce((all, one) => all + one.amount, 0);

/** The drive that serves with the longest p99. */
function slowest(snapshot: Snapshot): DriveSnapshot | undefined {
  const serving = snapshot.drives.filter((drive) => (drive.iops ?? 0) > 0);
  return serving.sort((a, b) => (b.latency_us.p99 ?? 0) - (a.latency_us.p99 ?? 0))[0];
}

/** Seconds with tenths in the first minute, then minutes and seconds, then hours and minutes. */
export function clock(time: number): string {
  if (time < 60) return `${time.toFixed(1)}\u00a0s`;
  const [hours, minutes, rest] = [Math.floor(time / 3600), Math.floor((time % 3600) / 60), Math.floor(time % 60)];
  return hours > 0 ? `${hours}\u00a0h ${minutes}\u00a0min` : `${minutes}\u00a0min ${rest}\u00a0s`;
}

const pace = (value: Figure): string => (value === null ? NONE : `${ratio(value)}\u00a0×`);

const TILES: Tile[] = [
  {
    key: "throughput",
    title: "Throughput",
    figure: (one) => bytesPerSecond(total(one, (drive) => drive.read_bytes_per_s) + total(one, (drive) => drive.write_bytes_per_s)),
    more: (one) => `${bytesPerSecond(total(one, (drive) => drive.write_bytes_per_s))} of it written`,
  },
  {
    key: "requests",
    title: "Requests",
    figure: (one) => perSecond(total(one, (drive) => drive.iops)),
    more: (one) => `${count(total(one, (drive) => drive.queue_depth))} waiting · ${one.connections} ${one.connections === 1 ? "connection" : "connections"}`,
  },
  {
    key: "slowest",
    title: "Longest p99",
    figure: (one) => latency(slowest(one)?.latency_us.p99 ?? null),
    more: (one) => slowest(one)?.name ?? "no requests",
  },
  {
    key: "serving",
    title: "Drives serving",
    figure: (one) => `${one.drives.filter((drive) => drive.state === "ready").length} of ${one.drives.length}`,
    more: (one) => `${bytes(total(one, (drive) => drive.totals.read_bytes + drive.totals.write_bytes))} moved since the start`,
  },
  {
    key: "lent",
    title: "Lent now",
    figure: (one) => cores(lent(one, "processor")),
    more: (one) => `${mebibytes(lent(one, "memory"))} of mapping memory`,
  },
  {
    key: "lateness",
    title: "Answers late by",
    figure: (one) => latency(one.lateness_us.p50),
    more: (one) => `p99 ${latency(one.lateness_us.p99)} · max ${latency(one.lateness_us.max)}`,
  },
  {
    key: "pace",
    title: "Pace",
    figure: (_, past) => pace(past.measuredPace()),
    more: (one) => `${one.pace === null ? "not paced" : `${pace(one.pace)} asked`} · noise ${latency(one.noise_us)}`,
  },
  {
    key: "time",
    title: "Simulated time",
    figure: (one) => clock(one.time_seconds),
    more: (one) => `${clock(one.wall_seconds)} on the clock`,
  },
];

export class Tiles {
  readonly place = element("dl", { class: "tiles" });
  private readonly cells = TILES.map((tile) => {
    const [figure, more] = [element("dd", { class: "figure", "data-tile": tile.key }, NONE), element("dd", { class: "more" }, "\u00a0")];
    this.place.append(element("div", {}, element("dt", {}, tile.title), figure, more));
    return { figure, more };
  });

  show(snapshot: Snapshot, past: Past): void {
    TILES.forEach((tile, index) => {
      const cell = this.cells[index];
      if (!cell) return;
      cell.figure.textContent = tile.figure(snapshot, past);
      cell.more.textContent = tile.more(snapshot, past);
    });
  }
}
