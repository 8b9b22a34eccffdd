import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesPerSecond, cores, count, dollars, latency, listed, mark, mebibytes, percent, perSecond, ratio, si } from "../src/format.ts";

/** Figures stand apart from units and thousands by spaces that do not break. */
const plain = (text: string): string => text.replace(/[\u00a0\u202f]/g, " ");

test("values get the prefix that leaves one to three digits before the point", () => {
  const cases: [number, string][] = [
    [0, "0 B/s"], [1, "1.00 B/s"], [999, "999 B/s"], [999.6, "1.00 kB/s"], [1234, "1.23 kB/s"], [12_345, "12.3 kB/s"],
    [999_499, "999 kB/s"], [999_500, "1.00 MB/s"], [66.3e9, "66.3 GB/s"], [4.2e12, "4.20 TB/s"], [-2500, "-2.50 kB/s"],
  ];
  for (const [value, expected] of cases) assert.equal(plain(bytesPerSecond(value)), expected);
});

test("small values get small prefixes", () => {
  assert.equal(plain(si(0.5, "J")), "500 mJ");
  assert.equal(plain(si(1.5e-9, "s")), "1.50 ns");
  assert.equal(plain(si(0.00123, "J")), "1.23 mJ");
});

test("latencies are given in microseconds and shown in the unit that fits", () => {
  for (const [us, expected] of [[0.85, "850 ns"], [160, "160 µs"], [999.7, "1.00 ms"], [2134, "2.13 ms"], [1.2e6, "1.20 s"], [0, "0 s"]] as const) {
    assert.equal(plain(latency(us)), expected);
  }
});

test("shares, money, memory, cores and counts carry their unit", () => {
  assert.equal(plain(percent(0.373)), "37.3 %");
  assert.equal(plain(percent(0.0001)), "< 0.1 %");
  assert.equal(plain(percent(0)), "0.0 %");
  assert.equal(plain(dollars(5640.4)), "$5 640");
  assert.equal(plain(dollars(12.5)), "$12.50");
  assert.equal(plain(mebibytes(384)), "384 MiB");
  assert.equal(plain(mebibytes(1536)), "1.50 GiB");
  assert.equal(plain(cores(0.5)), "0.500 cores");
  assert.equal(plain(cores(1)), "1.00 core");
  assert.equal(plain(count(1234567)), "1 234 567");
  assert.equal(plain(perSecond(0.25)), "0.250 /s");
  assert.equal(plain(perSecond(1.97e6)), "1.97 M/s");
  assert.equal(ratio(1.206), "1.21");
});

test("a missing figure is a dash everywhere", () => {
  for (const format of [bytesPerSecond, latency, percent, dollars, mebibytes, cores, count, perSecond, ratio]) assert.equal(format(null), "–");
  assert.equal(percent(Number.NaN), "–");
});

test("marks of an axis have no needless zeros", () => {
  const cases: [string, string][] = [["80.0 GB/s", "80 GB/s"], ["1.00 ms", "1 ms"], ["1.50 ms", "1.5 ms"], ["500 µs", "500 µs"], ["0 B/s", "0"], ["0.050 cores", "0.05 cores"], ["$0.00", "0"], ["0.0 %", "0"], ["100 %", "100 %"]];
  for (const [text, expected] of cases) assert.equal(mark(text), expected);
});

test("names are listed in words", () => {
  assert.deepEqual([[], ["a"], ["a", "b"], ["a", "b", "c"]].map(listed), ["", "a", "a and b", "a, b and c"]);
});
