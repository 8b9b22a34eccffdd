// Sentences and cells of figures over several seeds.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReportDocument, Seeds } from "../src/schema.ts";
import { differencesInWords, seedsFindings, withInterval } from "../src/seeds.ts";

const metric = (key: string, title: string, better: "more" | "less") => ({ key, title, unit: "ratio", better, needs: "nothing", about: "", absent: "", component: null, series: false, shown: true });
const document = { metrics: [metric("throughput_bytes_per_s", "Throughput", "more"), metric("latency_us.mean", "Latency, mean", "less")] } as unknown as ReportDocument;
const difference = (key: string, design: string, percent: number, is_there: boolean) => ({ key, best: "xbof", design, percent, half_width_percent: 0.5, is_there, seeds: 3 });

test("differences are told apart from none", () => {
  const seeds: Seeds = {
    seeds: [1, 2, 3],
    designs: [],
    differences: [
      difference("throughput_bytes_per_s", "conv", -0.1, false),
      difference("throughput_bytes_per_s", "shrunk", -20, true),
      difference("latency_us.mean", "conv", 3.456, true),
      difference("latency_us.mean", "shrunk", 25, true),
    ],
  };
  assert.deepEqual(differencesInWords(document, seeds), [
    "Throughput: xbof has the most; shrunk (−20.00 ± 0.50 %) differs from it; there is no difference at 95 % confidence to conv (−0.10 ± 0.50 %).",
    "Latency, mean: xbof has the least; conv (+3.46 ± 0.50 %) and shrunk (+25.00 ± 0.50 %) differ from it.",
  ]);
});

test("a mean without an interval stands alone, and nothing is a dash", () => {
  const text = (value: number | null) => (value === null ? "–" : value.toFixed(1));
  const figure = (mean: number | null, half_width: number | null) => ({ key: "a", mean, half_width, values: [] });
  assert.equal(withInterval(figure(2, 0.25), text), "2.0 ± 0.3");
  assert.equal(withInterval(figure(2, null), text), "2.0");
  assert.equal(withInterval(figure(null, null), text), "–");
  assert.equal(withInterval(undefined, text), "–");
});

test("without differences the page says why there are none", () => {
  const named = (names: string[], seeds: number[] = [1, 2], loads = 1): string[] => {
    const designs = names.map((name) => ({ name, figures: [] }));
    const explorer = loads > 1 ? { loads: Array.from({ length: loads }, () => ({})) } : undefined;
    return seedsFindings({ ...document, report: { explorer } } as unknown as ReportDocument, { seeds, designs, differences: [] } as unknown as Seeds);
  };
  assert.deepEqual(named(["conv"]), ["One design was run."]);
  assert.deepEqual(named(["conv at 4", "conv at 8", "xbof at 4", "xbof at 8"], [1, 2], 2), ["These runs serve different loads, so they are not set against each other."]);
  assert.deepEqual(named(["conv", "xbof"]), ["Too few seeds were finished by all designs to set them against each other."]);
});

test("differences over fewer seeds than were run say over how many", () => {
  const seeds = { seeds: [1, 2, 3, 4], designs: [], differences: [difference("throughput_bytes_per_s", "conv", -20, true)] };
  assert.deepEqual(differencesInWords(document, seeds), ["Throughput: xbof has the most, by the 3 seeds that all of them finished; conv (−20.00 ± 0.50 %) differs from it."]);
});
