import assert from "node:assert/strict";
import { test } from "node:test";
import { Jbof } from "../fixture/jbof.ts";
import { MINUTE, MOMENT, Past, roundUp } from "../src/past.ts";
import type { Snapshot } from "../src/schema.ts";

function after(count: number, jbof = new Jbof(3, 2)): Past {
  const past = new Past();
  for (let turn = 0; turn < count; turn += 1) past.add(jbof.next());
  return past;
}

const bytes = (snapshot: Snapshot, drive: number): number => snapshot.drives[drive]?.read_bytes_per_s ?? 0;

test("a minute is remembered, and no more", () => {
  const past = after(800);
  assert.ok(past.snapshots.length > 600 && past.snapshots.length <= 612, `${past.snapshots.length}`);
  assert.ok((past.snapshots[0]?.time_seconds ?? 0) >= 80 - MINUTE - 1);
});

test("bins cover the window to its end and hold the mean of what is in them", () => {
  const past = after(700);
  const bins = past.binned(0, MINUTE, 120, (drive) => drive.read_bytes_per_s, "mean");
  assert.ok((bins[0]?.from ?? 0) <= past.end - MINUTE && (bins.at(-1)?.to ?? 0) >= past.end - 1e-9);
  bins.forEach((bin, index) => assert.ok(Math.abs((bins[index + 1]?.from ?? bin.to) - bin.to) < 1e-9));
  assert.ok(bins.every((bin) => bin.value !== null), "a bin is empty");
  const bin = bins[60];
  assert.ok(bin);
  const inside = past.snapshots.filter((one) => one.time_seconds > bin.from + 1e-6 && one.time_seconds <= bin.to + 1e-6).map((one) => bytes(one, 0));
  assert.equal(inside.length, 5);
  assert.ok(Math.abs((bin.value ?? 0) - inside.reduce((all, one) => all + one, 0) / 5) < 1);
});

test("bins keep still while time goes on", () => {
  const jbof = new Jbof(3, 2);
  const past = after(700, jbof);
  const before = past.binned(0, MINUTE, 120, (drive) => drive.read_bytes_per_s, "most").slice(5, 100);
  past.add(jbof.next());
  const now = past.binned(0, MINUTE, 120, (drive) => drive.read_bytes_per_s, "most");
  for (const bin of before) assert.ok(now.some((one) => Math.abs(one.from - bin.from) < 1e-9 && one.value === bin.value), `${bin.from}`);
});

test("fine steps follow each other through the last moment", () => {
  const steps = after(100).steps(0, (points) => points.read_bytes_per_s);
  assert.ok(steps.length >= MOMENT * 100);
  steps.forEach((step, index) => assert.ok(Math.abs((steps[index + 1]?.from ?? step.to) - step.to) < 1e-6));
});

test("the same snapshot twice changes nothing, a lower number begins anew", () => {
  const past = after(50);
  const latest = past.latest;
  assert.ok(latest);
  past.add(latest);
  assert.equal(past.snapshots.length, 50);
  past.add({ ...latest, number: 1, time_seconds: 0.1, events: [] });
  assert.deepEqual([past.snapshots.length, past.events.length], [1, 0]);
});

test("events that the server repeats are taken once", () => {
  const jbof = new Jbof(3, 2);
  const past = new Past();
  let events: Snapshot["events"] = [];
  for (let turn = 0; turn < 20; turn += 1) {
    if (turn === 10) jbof.command({ command: "pull", drive: "idle-2" });
    const snapshot = jbof.next();
    events = [...events, ...snapshot.events];
    // Every second one is skipped.
    if (turn % 2 === 1) past.add({ ...snapshot, events });
  }
  assert.deepEqual(past.events, events);
  assert.ok(events.some((event) => event.kind === "lost"));
});

test("a slow pace does not fill the memory", () => {
  const past = new Past();
  const snapshot = new Jbof(2, 1).next();
  for (let number = 1; number <= 5000; number += 1) past.add({ ...snapshot, number, time_seconds: number / 1000, events: [] });
  assert.ok(past.snapshots.length <= 110, `${past.snapshots.length}`);
  assert.equal(past.latest?.number, 5000);
});

test("the pace is measured on the clock", () => {
  const past = new Past();
  const snapshot = new Jbof(2, 1).next();
  assert.equal(past.measuredPace(), null);
  for (let number = 1; number <= 50; number += 1) past.add({ ...snapshot, number, time_seconds: number / 20, wall_seconds: number / 10, events: [] });
  assert.ok(Math.abs((past.measuredPace() ?? 0) - 0.5) < 1e-9);
});

test("ends of axes are round and not below", () => {
  for (const [value, end] of [[0, 1], [1, 1], [1.1, 2], [7, 8], [8.5e9, 1e10], [0.03, 0.03], [Number.NaN, 1]] as const) assert.ok(Math.abs(roundUp(value) - end) < end * 1e-9, `${value}`);
});

test("a fast pace, an idle enclosure and a slow pace do not fill the memory with fine steps", () => {
  const snapshot = new Jbof(2, 1).next();
  /** Kept steps of a drive after ten minutes of the wall clock, in which a snapshot has ten of `step` seconds. */
  const kept = (pace: number, step: number): number => {
    const past = new Past();
    for (let number = 1; number <= 6000; number += 1) {
      const now = 0.1 * pace * number;
      past.add({ ...snapshot, number, time_seconds: now, events: [], points: { ...snapshot.points, begin_seconds: now - 10 * step, step_seconds: step } });
    }
    return past.steps(0, (points) => points.read_bytes_per_s).length;
  };
  const ten = snapshot.points.drives[0]?.read_bytes_per_s.length ?? 0;
  assert.ok(ten > 0);
  // Each snapshot lasts longer than the moment: the newest one is left.
  for (const pace of [30, 100, 1000]) assert.equal(kept(pace, 0.01 * pace), ten, `pace ${pace}`);
  assert.ok(kept(1, 0.01) >= MOMENT * 100);
  assert.equal(kept(0, 0), 0);
  assert.ok(kept(0.001, 0.00001) <= 1000 * ten);
});
