// The live page in a real browser, with a made-up JBOF behind it. Skipped, and loudly, where no browser is installed.

import assert from "node:assert/strict";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { browser, installed } from "../../report/browser/chromium.ts";
import { Jbof } from "../fixture/jbof.ts";
import { Served } from "./server.ts";

/** Serves, opens the page and waits for its first figures; nothing may be complained about unless it is expected. */
async function on(chromium: Browser, check: (page: Page, served: Served) => Promise<void>, { served = new Served(), expected = /^$/, options = {}, token = served.token }: { served?: Served; expected?: RegExp; options?: BrowserContextOptions; token?: string | null } = {}): Promise<void> {
  const address = await served.start();
  const page = await chromium.newPage({ viewport: { width: 1440, height: 900 }, ...options });
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !expected.test(message.text())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(address) && !request.url().startsWith("data:")) complaints.push(`request: ${request.url()}`);
  });
  try {
    await page.goto(token === null ? address : `${address}#token=${token}`);
    await page.locator(".drive").first().waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".drive canvas").length > 0);
    await check(page, served);
    assert.deepEqual(complaints, []);
  } finally {
    await page.close();
    await served.stop();
  }
}

/** Colours of a chart that are not its ground, as the number of distinct ones among sampled pixels. */
const coloursOf = (page: Page, chart: string): Promise<number> =>
  page.evaluate((selector) => {
    const found = new Set<string>();
    for (const canvas of document.querySelectorAll<HTMLCanvasElement>(`${selector} canvas`)) {
      const pixels = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height).data ?? new Uint8ClampedArray();
      for (let at = 0; at < pixels.length; at += 4) if ((pixels[at + 3] ?? 0) > 200) found.add(pixels.slice(at, at + 3).join());
    }
    return found.size;
  }, chart);

const row = (page: Page, drive: string) => page.locator(`.drive[data-drive="${drive}"]`);

const TESTS: [string, (chromium: Browser) => Promise<void>][] = [
  ["every drive has its row with pictures", (chromium) => on(chromium, async (page) => {
    assert.equal(await page.title(), "Made-up enclosure – Flashyard live");
    assert.equal(await page.locator(".drive").count(), 12);
    await page.waitForFunction(() => document.querySelectorAll(".flows canvas").length >= 2);
    await page.waitForTimeout(700);
    for (const chart of [".drive[data-drive=busy-0] > div:nth-child(2)", ".drive[data-drive=busy-0] > div:nth-child(3)", ".drive[data-drive=busy-0] > div:nth-child(4)", ".flows section:nth-child(1)", ".flows section:nth-child(2)"]) {
      const colours = await coloursOf(page, chart);
      assert.ok(colours >= 4, `${chart} has ${colours} colours`);
    }
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1440, "the page scrolls sideways");
  })],
  ["every number has its unit", (chromium) => on(chromium, async (page) => {
    for (const [tile, shape] of [["throughput", /GB\/s$/], ["requests", /M\/s$/], ["slowest", /µs$/], ["serving", /^12 of 12$/], ["lent", /cores$/], ["lateness", /µs$/], ["pace", /^(1\.0\d|0\.99\d*)\s×$/], ["time", /s$/]] as const) {
      assert.match((await page.locator(`[data-tile=${tile}]`).innerText()).replace(/\u00a0/g, " "), shape, tile);
    }
    const text = (await row(page, "busy-0").innerText()).replace(/\u00a0/g, " ");
    assert.match(text, /read [\d.]+ GB\/s.*written \d+ MB\/s/);
    assert.match(text, /p50 [\d.]+ µs.*p99 \d+ µs.*p99\.9 \d+ µs/s);
    assert.doesNotMatch(await page.locator("main").innerText(), /undefined|NaN|Infinity|null/);
  })],
  ["the figures are those of the snapshot, and go on", (chromium) => on(chromium, async (page, served) => {
    served.running = false;
    await page.waitForTimeout(150);
    const shown = await page.locator("[data-tile=time]").innerText();
    served.running = true;
    await page.waitForFunction((before) => document.querySelector("[data-tile=time]")?.textContent !== before, shown);
    served.alter = (snapshot) => {
      for (const drive of snapshot.drives) [drive.read_bytes_per_s, drive.write_bytes_per_s, drive.iops] = [3e9, 5e8, 1000];
    };
    await page.waitForFunction(() => document.querySelector("[data-tile=throughput]")?.textContent === "42.0\u00a0GB/s");
    assert.equal(await page.locator("[data-tile=requests]").innerText(), "12.0\u00a0k/s");
  })],
  ["media errors stand in the row of their drive, and stand out", (chromium) => on(chromium, async (page, served) => {
    served.alter = (snapshot) => snapshot.drives.forEach((drive, index) => (drive.media_errors = index === 1 ? 1 : index === 2 ? 1234 : 0));
    await row(page, "busy-2").getByText(/^1.234 media errors$/).waitFor();
    assert.equal(await row(page, "busy-1").locator(".errors").innerText(), "1 media error");
    assert.match(await row(page, "busy-0").innerText(), /waiting · 0 media errors/);
    assert.equal(await page.locator(".errors").count(), 2);
  })],
  ["a drive is pulled and put back", (chromium) => on(chromium, async (page, served) => {
    await row(page, "idle-7").getByRole("button", { name: "Pull out" }).click();
    await row(page, "idle-7").getByText("pulled out").waitFor();
    assert.match((await row(page, "idle-7").getAttribute("class")) ?? "", /gone/);
    assert.equal(await page.locator("[data-tile=serving]").innerText(), "11 of 12");
    assert.match(await page.locator(".log li").first().innerText(), /idle-7 pulled/);
    // Time stops, however slow the machine is: it comes back in half a second.
    served.running = false;
    await row(page, "idle-7").getByRole("button", { name: "Put back" }).click();
    while (served.commands.length < 2) await page.waitForTimeout(20);
    served.turn();
    await row(page, "idle-7").getByText("coming back").waitFor();
    served.running = true;
    await row(page, "idle-7").getByText("serves").waitFor();
    assert.match(await page.locator(".log").innerText(), /idle-7 put back/);
    assert.deepEqual(served.commands, [{ command: "pull", drive: "idle-7" }, { command: "insert", drive: "idle-7" }]);
  })],
  ["power and harvesting concern all drives", (chromium) => on(chromium, async (page, served) => {
    await page.getByRole("button", { name: "Harvesting is on" }).click();
    await page.getByRole("button", { name: "Harvesting is off" }).waitFor();
    await page.getByText("No cores are lent.").waitFor();
    page.once("dialog", (dialog) => void dialog.dismiss());
    await page.getByRole("button", { name: "Cut all power" }).click();
    assert.deepEqual(served.commands, [{ command: "harvest", on: false }], "it asks first");
    page.once("dialog", (dialog) => void dialog.accept());
    await page.getByRole("button", { name: "Cut all power" }).click();
    await page.getByRole("button", { name: "Restore power" }).waitFor();
    assert.equal(await page.locator(".state.off").count(), 12);
    await page.getByRole("button", { name: "Restore power" }).click();
    await page.waitForFunction(() => document.querySelector("[data-tile=serving]")?.textContent === "12 of 12");
    assert.deepEqual(served.commands, [{ command: "harvest", on: false }, { command: "power", on: false }, { command: "power", on: true }]);
  })],
  ["power can be cut while a drive is pulled", (chromium) => on(chromium, async (page) => {
    await row(page, "idle-7").getByRole("button", { name: "Pull out" }).click();
    await row(page, "idle-7").getByText("pulled out").waitFor();
    assert.equal(await page.getByRole("button", { name: "Cut all power" }).isEnabled(), true);
  })],
  ["the token leaves the address and outlives a reload", (chromium) => on(chromium, async (page, served) => {
    assert.equal(new URL(page.url()).hash, "");
    await page.reload();
    await row(page, "idle-7").getByRole("button", { name: "Pull out" }).click();
    await row(page, "idle-7").getByText("pulled out").waitFor();
    assert.equal(served.commands.length, 1);
  })],
  ["a page without the token only looks, and says so", (chromium) => on(chromium, async (page, served) => {
    await page.getByText("read only").waitFor();
    for (const button of await page.locator(".drive button, .top button.danger").all()) assert.equal(await button.isDisabled(), true);
    assert.equal(await page.getByRole("button", { name: "Harvesting is on" }).isDisabled(), true);
    assert.equal(await page.getByRole("button", { name: "Hold" }).isEnabled(), true);
    assert.match((await row(page, "busy-0").getByRole("button").getAttribute("title")) ?? "", /only looks/);
    assert.deepEqual(served.commands, []);
  }, { token: null })],
  ["a command with an old token is refused in words", (chromium) => on(chromium, async (page) => {
    await row(page, "busy-0").getByRole("button").click();
    await page.getByText("Not done: commands need the token").waitFor();
  }, { token: "old", expected: /401/ })],
  ["a command that is refused is told", (chromium) => on(chromium, async (page, served) => {
    served.jbof.command = () => "the enclosure is sealed";
    await row(page, "busy-0").getByRole("button").click();
    await page.getByText("Not done: the enclosure is sealed").waitFor();
  }, { expected: /409/ })],
  ["a lost connection is told, and the page goes on by itself", (chromium) => on(chromium, async (page, served) => {
    await served.cut();
    await page.getByText("Connection lost.").waitFor();
    assert.match((await page.getAttribute("body", "class")) ?? "", /stale/);
    await served.start();
    await page.getByText("Connection lost.").waitFor({ state: "hidden" });
    const before = await page.locator("[data-tile=time]").innerText();
    await page.waitForFunction((then) => document.querySelector("[data-tile=time]")?.textContent !== then, before);
  }, { expected: /ERR_|Failed to load/ })],
  ["a server that says nothing is told too", (chromium) => on(chromium, async (page, served) => {
    served.running = false;
    await page.getByText(/Connected, but no news for \d/).waitFor();
    served.running = true;
    await page.getByText("Connected, but no news").waitFor({ state: "hidden" });
  })],
  ["another run begins with an empty past", (chromium) => on(chromium, async (page, served) => {
    const second = new Jbof(4, 2, "Second enclosure");
    served.jbof.next = () => second.next();
    await page.waitForFunction(() => document.querySelectorAll(".drive").length === 4);
    assert.equal(await page.locator("h1").innerText(), "Second enclosure");
    assert.equal(await page.locator(".log li").filter({ hasText: "hosts connected" }).count(), 1);
  })],
  ["hold lets the page stand still", (chromium) => on(chromium, async (page) => {
    await page.getByRole("button", { name: "Hold" }).click();
    const before = await page.locator("[data-tile=time]").innerText();
    await page.waitForTimeout(400);
    assert.equal(await page.locator("[data-tile=time]").innerText(), before);
    await page.getByRole("button", { name: "Hold" }).click();
    await page.waitForFunction((then) => document.querySelector("[data-tile=time]")?.textContent !== then, before);
  })],
  ["hovering shows values with units", (chromium) => on(chromium, async (page) => {
    await page.getByRole("button", { name: "Hold" }).click();
    for (const [chart, unit] of [[".drive:nth-child(2) > div:nth-child(2) .chart", /read.*GB\/s/], [".drive:nth-child(2) > div:nth-child(3) .chart", /p99\.9.*µs/], [".drive:nth-child(2) > div:nth-child(4) .chart", /cores.*%/]] as const) {
      const place = page.locator(chart).first();
      await place.scrollIntoViewIfNeeded();
      const box = await place.boundingBox();
      assert.ok(box);
      await page.mouse.move(box.x + box.width * 0.5, box.y + box.height * 0.45);
      await page.mouse.move(box.x + box.width * 0.6, box.y + box.height * 0.45);
      await place.locator(".tip").waitFor();
      assert.match((await place.locator(".tip").innerText()).replace(/\s+/g, " "), unit, chart);
    }
  })],
  ["the last two seconds show a change within two steps of 10 ms", (chromium) => on(chromium, async (page, served) => {
    await page.getByText("2 s in steps of 10 ms").click();
    await page.getByText("mean of 10 ms").waitFor();
    // Time stops before the page is waited for, however slow the machine is.
    served.running = false;
    served.jbof.command({ command: "pull", drive: "busy-0" });
    for (let turn = 0; turn < 8; turn += 1) served.turn();
    await row(page, "busy-0").getByText("pulled out").waitFor();
    await page.waitForTimeout(500);
    const place = row(page, "busy-0").locator("> div:nth-child(2) .chart");
    const box = await place.boundingBox();
    assert.ok(box);
    // Times before now, in seconds as they are shown (neighbours may show the same), with the bytes read then: from 1.2 s to 0.6 s before, over the lower part of the chart.
    const read: [number, string][] = [];
    for (let at = 0; at <= 120; at += 1) {
      await page.mouse.move(box.x + 54 + (box.width - 60) * (0.4 + 0.3 * (at / 120)), box.y + box.height * 0.8);
      const text = ((await place.locator(".tip").textContent({ timeout: 2000 })) ?? "").replaceAll("\u00a0", " ");
      const found = /throughput, −([\d.]+) (m?)s.*?read(.*?B\/s)/.exec(text);
      assert.ok(found, text);
      read.push([Number(found[1]) * (found[2] === "m" ? 0.001 : 1), found[3] ?? ""]);
    }
    const [some, none] = [read.findLast(([, bytes]) => / GB\/s/.test(bytes)), read.find(([, bytes]) => bytes === "0 B/s")];
    assert.ok(some && none && some[0] >= none[0] && some[0] - none[0] < 0.021, `${some} then ${none}`);
  })],
  ["hostile names stay text", (chromium) => {
    const served = new Served(new Jbof(3, 2), 0);
    const hostile = `<img src=x onerror="window.broken=1">{a|b}`;
    served.alter = (snapshot) => {
      snapshot.scenario = hostile;
      for (const drive of snapshot.drives) drive.name = `${hostile}${drive.name}`;
      for (const event of snapshot.events) event.text = hostile;
    };
    for (let turn = 0; turn < 20; turn += 1) served.turn();
    return on(chromium, async (page) => {
      assert.equal(await page.locator("h1").textContent(), hostile);
      const place = page.locator(".drive .chart").first();
      await place.hover();
      await place.locator(".tip").waitFor();
      assert.equal(await page.locator("img").count(), 0);
      assert.equal(await page.evaluate(() => (window as { broken?: number }).broken), undefined);
    }, { served });
  }],
  ["missing figures are dashes", (chromium) => {
    const served = new Served(new Jbof(2, 1), 30);
    served.alter = (snapshot) => {
      for (const drive of snapshot.drives) {
        drive.latency_us = { mean: null, p50: null, p99: null, p999: null, p9999: null, max: null };
        [drive.wear_percent, drive.dram_utilization, drive.read_bytes_per_s] = [null, null, null];
      }
      [snapshot.pace, snapshot.noise_us, snapshot.segment_mib] = [null, null, null];
    };
    return on(chromium, async (page) => {
      await page.getByText("not paced").waitFor();
      assert.doesNotMatch(await page.locator("main").innerText(), /undefined|NaN|Infinity|null/);
    }, { served });
  }],
  ["a narrow screen and many drives do not scroll sideways", async (chromium) => {
    await on(chromium, async (page) => assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 420), { options: { viewport: { width: 420, height: 800 } } });
    await on(chromium, async (page) => {
      assert.equal(await page.locator(".drive").count(), 24);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280);
    }, { served: new Served(new Jbof(24, 12), 100), options: { viewport: { width: 1280, height: 800 } } });
  }],
  ["dark colours are used where they are preferred", (chromium) => on(chromium, async (page) => {
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), "rgb(18, 22, 27)");
  }, { options: { colorScheme: "dark" } })],
];

if (!installed()) {
  console.error("SKIPPED: no chromium is installed; the live page was not tested in a browser");
  process.exit(process.env["FLASHYARD_REQUIRE"] ? 1 : 0);
}
const chromium = await browser();
let failed = 0;
for (const [name, test] of TESTS) {
  const begin = performance.now();
  try {
    await test(chromium);
    console.log(`ok   ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.error(`FAIL ${name}\n     ${error instanceof Error ? error.message.slice(0, 1000) : error}`);
  }
}
await chromium.close();
console.log(`${TESTS.length - failed} of ${TESTS.length} browser tests of the live page passed`);
process.exit(failed === 0 ? 0 : 1);
