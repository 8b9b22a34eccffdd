import assert from "node:assert/strict";
import { test } from "node:test";
import { explorer, sweep } from "../fixture/explorer.ts";
import { PRICES, SERVICES, counted, frontLine, loadName, runNames, sweptDesigns } from "../src/explorer.ts";
import { page } from "../src/page.ts";

test("a front is a staircase: who costs more serves better", () => {
  const found = explorer();
  for (const load of found.loads) {
    const points = load.points.flatMap((place) => found.points[place] ?? []);
    for (const price of PRICES) {
      for (const service of SERVICES) {
        const line = frontLine(points, price, service);
        assert.ok(line.length > 0);
        const sign = service.key === "p99" ? 1 : -1;
        line.slice(1).forEach(([paid, got], index) => {
          const [less, worse] = line[index] ?? [0, 0];
          assert.ok(paid > less ? sign * got < sign * worse : paid === less && got === worse, `${less}, ${worse} then ${paid}, ${got}`);
        });
      }
    }
  }
});

test("a run without a figure is on no line", () => {
  const [price, service] = [PRICES[0], SERVICES[0]];
  const point = explorer().points[0];
  assert.ok(price && service && point);
  assert.deepEqual(frontLine([{ ...point, fronts: ["cost_p99"], latency_p99_us: null }], price, service), []);
});

test("short names say what varies and are unique, or are the full names", () => {
  const found = explorer();
  const names = runNames(found);
  assert.deepEqual(names.slice(0, 3), ["conv 8b", "oc 8b", "shrunk 1c 25% 8b"]);
  assert.equal(new Set(names).size, names.length);
  for (const point of found.points) point.load = [];
  assert.deepEqual(runNames(found), found.points.map((point) => point.name));
});

test("loads are named in words where there are words for them", () => {
  const shown = page(sweep());
  const load = { settings: ["jbof.busy_drives=4", "workload.size=4 KiB"], points: [0], dominated: 0, reference: null, cheapest: null };
  assert.equal(loadName(shown, load), "4 of 12 drives busy, workload.size=4 KiB");
  assert.equal(loadName(shown, { ...load, settings: [] }), "one load");
  assert.equal(sweptDesigns(explorer()), "conv, oc, shrunk, vh, proch, xbof; 150 runs of a sweep");
  assert.deepEqual([counted(1, "core"), counted(2, "core")], ["1 core", "2 cores"]);
});

test("a page of a large sweep shows some of its runs, each with its design's colour once", () => {
  const shown = page(sweep());
  assert.deepEqual(shown.designs.map((design) => design.result.name), shown.explorer?.shown.map((place) => shown.document.report.designs[place]?.name));
  assert.equal(new Set(shown.designs.map((design) => design.hue.light)).size, shown.designs.length);
  assert.equal(shown.comparable, false);
});
