import assert from "node:assert/strict";
import { test } from "node:test";
import { clock } from "../src/tiles.ts";

test("times are as short as their size allows, with units", () => {
  for (const [time, text] of [[0, "0.0 s"], [59.94, "59.9 s"], [60, "1 min 0 s"], [3599.9, "59 min 59 s"], [3600, "1 h 0 min"], [90061, "25 h 1 min"]] as const) {
    assert.equal(clock(time).replaceAll("\u00a0", " "), text);
  }
});
