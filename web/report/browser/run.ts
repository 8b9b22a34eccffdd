// The page in a real browser, from a file and without a network. Skipped, and loudly, where no browser is installed.

import assert from "node:assert/strict";
import { statSync } from "node:fs";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { fixture } from "../fixture/generate.ts";
import { figure } from "../src/metrics.ts";
import { browser, installed } from "./chromium.ts";
import { CASES, HOSTILE, OUT, pageOf } from "./pages.ts";

/** Sections with the least number of marks that their charts have in the usual report. */
const MARKS: [string, number][] = [["compare", 18], ["distribution", 6], ["split", 100], ["utilization", 2000], ["overtime", 6], ["lending", 40], ["wear", 12], ["cost", 20]];

interface Opened {
  page: Page;
  /** Errors of the console and of scripts, and requests for anything but the file itself. */
  complaints: string[];
}

async function open(chromium: Browser, address: string, options: BrowserContextOptions = {}): Promise<Opened> {
  const page = await chromium.newPage({ viewport: { width: 1280, height: 800 }, ...options });
  const complaints: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
  page.on("request", (request) => {
    if (request.url() !== address && !request.url().startsWith("about:")) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  return { page, complaints };
}

/** Runs `check` on a fresh page of a case; nothing may be complained about meanwhile. */
async function on(chromium: Browser, name: string, check: (page: Page) => Promise<void>, options?: BrowserContextOptions): Promise<void> {
  const make = CASES[name];
  assert.ok(make, name);
  const { page, complaints } = await open(chromium, pageOf(name, make()), options);
  await check(page);
  assert.deepEqual(complaints, []);
  await page.close();
}

const marks = (page: Page, section: string): Promise<number> => page.locator(`#${section} .chart svg path, #${section} .chart svg rect`).count();

/** What the first chart of a section looks like; drawing again only changes the numbers in identifiers. */
async function picture(page: Page, section: string): Promise<string> {
  return (await page.locator(`#${section} .chart svg`).first().innerHTML()).replace(/zr\d+/g, "zr");
}

/** Shows the page as print sees it, or back; the page notices with the next frame. */
async function medium(page: Page, media: "print" | "screen"): Promise<void> {
  await page.emulateMedia({ media });
  await page.waitForFunction((printing) => document.documentElement.classList.contains("printing") === printing, media === "print");
}

/** A value with its unit as a number: "66.3 GB/s" is 66.3e9. Written anew here, so that it does not share its errors. */
function read(text: string): number {
  const found = /^★?\s*(\$?)([\d.\s]+?)\s*([kMGTµmn%]?)(B\/s\/\$|B\/s|\/s|B|s|J)?$/.exec(text.replace(/[\u00a0\u202f]/g, " ").trim());
  assert.ok(found, `cannot read ${text}`);
  const factor = { "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, m: 1e-3, "µ": 1e-6, n: 1e-9, "%": 0.01 }[found[3] ?? ""];
  return Number((found[2] ?? "").replaceAll(" ", "")) * (factor ?? Number.NaN);
}

const TESTS: [string, (chromium: Browser) => Promise<void>][] = [
  ["every section of the usual report has its marks", (chromium) => on(chromium, "demo", async (page) => {
    assert.equal(await page.title(), "Seven JBOF designs under a read-mostly cloud workload – Flashyard report");
    for (const [section, least] of MARKS) {
      const found = await marks(page, section);
      assert.ok(found >= least, `${section} has ${found} marks, not ${least}`);
    }
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280, "the page scrolls sideways");
  })],
  ["the table says what the document says", (chromium) => on(chromium, "demo", async (page) => {
    const designs = fixture().report.designs;
    const microseconds = (key: string): boolean => key.startsWith("latency_us.");
    const rows = fixture().metrics.filter((metric) => metric.component === null && metric.shown && !metric.series).map(({ key }) => key);
    assert.equal(rows.length, 21);
    for (const key of rows) {
      const cells = await page.locator(`tr[data-row="${key}"] td`).allTextContents();
      assert.equal(cells.length, designs.length);
      designs.forEach((design, index) => {
        const [shown, expected] = [read(cells[index] ?? ""), (figure(design, key) ?? Number.NaN) * (microseconds(key) ? 1e-6 : 1)];
        // Three digits, or a tenth of a percent.
        assert.ok(Math.abs(shown - expected) <= Math.max(0.0051 * Math.abs(expected), 0.00051), `${key} of ${design.name}: ${cells[index]} for ${expected}`);
      });
    }
    assert.match(await page.locator('tr[data-row="throughput_bytes_per_s"] td.best').innerText(), /72\.9/);
  })],
  ["hovering shows a value with its unit in every chart", (chromium) => on(chromium, "demo", async (page) => {
    const units: [string, RegExp][] = [["compare", /GB\/s/], ["distribution", /µs|ms/], ["split", /µs \([\d.]+\s%\)/], ["utilization", /\d\s%/], ["overtime", /GB\/s/], ["lending", /cores?/], ["wear", /slots/], ["cost", /J/]];
    for (const [section, unit] of units) {
      const chart = page.locator(`#${section} .chart`).first();
      await chart.scrollIntoViewIfNeeded();
      const box = await chart.boundingBox();
      assert.ok(box);
      // Sweep until a mark is under the pointer.
      let text = "";
      for (let at = 0.3; at < 0.7 && !unit.test(text); at += 0.045) {
        await page.mouse.move(box.x + box.width * at, box.y + box.height * (section === "compare" ? 0.2 : at));
        text = (await chart.locator(".tip").allTextContents()).join(" ");
      }
      assert.match(text.replace(/[\u00a0\u202f]/g, " "), unit, section);
    }
  })],
  ["the choice of design and figure changes the heat map, with the keyboard alone", (chromium) => on(chromium, "demo", async (page) => {
    const before = await picture(page, "utilization");
    await page.locator("#utilization fieldset").nth(1).locator("input:checked").focus();
    await page.keyboard.press("ArrowLeft");
    assert.match(await page.locator("#utilization figcaption").innerText(), /Cores busy, shrunk/);
    const other = await picture(page, "utilization");
    assert.ok(other !== before, "another design looks the same");
    await page.locator("#utilization fieldset").first().locator("input:checked").focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await page.locator("#utilization figcaption").innerText(), /Cores lent to others, shrunk/);
    assert.ok((await picture(page, "utilization")) !== other, "another figure looks the same");
  })],
  ["dark colours are used where they are preferred, and are not printed", (chromium) => on(chromium, "demo", async (page) => {
    const ground = (): Promise<string> => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    assert.equal(await ground(), "rgb(18, 22, 27)");
    const before = await picture(page, "overtime");
    await medium(page, "print");
    assert.equal(await ground(), "rgb(255, 255, 255)");
    await medium(page, "screen");
    assert.ok((await picture(page, "overtime")) === before, "the chart is not what it was before print");
  }, { colorScheme: "dark" })],
  ["print shows every choice, everything folded, and cuts no chart", (chromium) => on(chromium, "demo", async (page) => {
    const screen = await page.locator(".chart").count();
    await medium(page, "print");
    // Six figures of three designs.
    assert.equal(await page.locator("#utilization .chart").count(), 18);
    assert.ok((await page.locator(".chart").count()) > screen + 14);
    assert.equal(await page.locator("details:not([open])").count(), 0);
    const wide = await page.evaluate(() => {
      const main = document.querySelector("main");
      const right = main?.getBoundingClientRect().right ?? 0;
      return [...document.querySelectorAll("svg, table, pre")].filter((one) => one.getBoundingClientRect().right > right + 1).map((one) => one.outerHTML.slice(0, 80));
    });
    assert.deepEqual(wide, []);
    const empty = await page.evaluate(() => [...document.querySelectorAll(".chart")].filter((one) => one.querySelectorAll("path, rect").length < 2).length);
    assert.equal(empty, 0);
    await medium(page, "screen");
    assert.equal(await page.locator(".chart").count(), screen);
    assert.equal(await page.locator("details[open]").count(), 0);
  })],
  ["the page prints to A4 with no blank page", (chromium) => on(chromium, "demo", async (page) => {
    const file = `${OUT}/printed.pdf`;
    const bytes = await page.pdf({ path: file, preferCSSPageSize: true });
    const text = bytes.toString("latin1");
    const pages = text.match(/\/Type\s*\/Page\b/g)?.length ?? 0;
    assert.ok(pages >= 5 && pages <= 20, `${pages} pages`);
    assert.match(text, /\/MediaBox\s*\[0 0 59[45][.\d]* 84[12][.\d]*\]/);
    assert.ok(statSync(file).size > 100_000);
    // Content streams of blank pages hold next to nothing.
    const streams = [...text.matchAll(/\/Contents (\d+) 0 R/g)].map((found) => Number(new RegExp(`(?:^|\\n)${found[1]} 0 obj\\s*<<[^>]*?/Length (\\d+)`).exec(text)?.[1] ?? 0));
    assert.equal(streams.length, pages);
    assert.ok(streams.every((length) => length > 400), `lengths of pages: ${streams.join(", ")}`);
  })],
  ["hostile text stays text", (chromium) => on(chromium, "hostile", async (page) => {
    assert.equal(await page.locator("h1").textContent(), HOSTILE);
    assert.equal(await page.evaluate(() => (window as { broken?: number }).broken), undefined);
    assert.equal(await page.locator("main img, main script, main b[onclick]").count(), 0);
    const chart = page.locator("#utilization .chart");
    await chart.scrollIntoViewIfNeeded();
    await chart.hover();
    assert.match((await chart.locator(".tip").textContent()) ?? "", /<img src=x/);
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280);
  })],
  ["seven designs fit", (chromium) => on(chromium, "seven", async (page) => {
    assert.equal(await page.locator("#utilization fieldset").nth(1).locator("input").count(), 7);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280);
  })],
  ["the head tells the title, what each design is, and the command that repeats the run", (chromium) => on(chromium, "real", async (page) => {
    assert.equal(await page.locator("h1").textContent(), "Two busy drives of three in a closed loop");
    assert.match(await page.locator(".about").innerText(), /conv\s+ordinary drives.*oc\s+open-channel drives/s);
    assert.equal(await page.locator(".command code").textContent(), "flashyard run crates/edge/cli/tests/reports/closed.toml");
  })],
  ["a real report stars no tail of a closed loop, and no energy or price of a design whose host works", (chromium) => on(chromium, "real", async (page) => {
    for (const row of ["latency_us.p50", "latency_us.p99", "latency_us.p999", "latency_us.max", "energy_joules"]) assert.equal(await page.locator(`tr[data-row="${row}"] td.best`).count(), 0, row);
    const oc = (await page.locator("#summary thead th").allInnerTexts()).indexOf("oc");
    for (const row of ["energy_joules_per_gb", "bom_dollars", "throughput_bytes_per_s_per_dollar"]) {
      assert.ok((await page.locator(`tr[data-row="${row}"] td.best`).count()) > 0, row);
      assert.equal(await page.locator(`tr[data-row="${row}"] > :nth-child(${oc + 1}).best`).count(), 0, row);
    }
    assert.match(await page.locator("#summary").innerText(), /Percentiles of latency are not ranked.*do not rank oc and vh/s);
  })],
  ["marks of time are round", (chromium) => on(chromium, "real", async (page) => {
    for (const section of ["overtime", "utilization"]) {
      const texts = (await page.locator(`#${section} .chart svg`).first().locator("text").allTextContents()).map((text) => text.replace(/\u00a0/g, " "));
      const times = texts.filter((text) => /^[\d.]+ [µm]?s$/.test(text));
      assert.ok(times.length >= 2, `${section}: ${texts.join("|")}`);
      // One digit and zeros, after the zero at which the axis begins.
      assert.ok(times.every((time) => /^(\d0*|\d{2}0+|0\.\d|\d\.5) /.test(time)), `${section}: ${times.join()}`);
    }
  })],
  ["a phone is told that a table goes on, and a wide screen is not", async (chromium) => {
    await on(chromium, "real", async (page) => {
      await page.locator("#summary .scrolls").waitFor();
      assert.equal(await page.locator("#summary .sideways").isVisible(), true);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 420, "the page itself scrolls sideways");
    }, { viewport: { width: 420, height: 800 } });
    await on(chromium, "real", async (page) => assert.equal(await page.locator("#summary .sideways").isVisible(), false));
  }],
  ["a sweep of one drive's load has no explorer, and a window that is not steady says so", async (chromium) => {
    await on(chromium, "real-sweep", async (page) => assert.equal(await page.locator("#explorer").count(), 0));
    await on(chromium, "real-unsteady", async (page) => assert.match(await page.locator("#notes").innerText(), /conv: not steady: throughput goes from/));
  }],
  ["a sweep is drawn as dots with their front, for each load and price", (chromium) => on(chromium, "sweep", async (page) => {
    const section = page.locator("#explorer");
    assert.equal(await section.locator(".chart svg").count(), 2);
    // 50 runs a load in each picture, a symbol of the legend for each design.
    assert.ok((await marks(page, "explorer")) >= 100);
    assert.match(await section.locator(".finding").innerText(), /Of 150 runs \d+ are dominated.*with 6 of 12 drives busy: xbof with/);
    const rows = section.locator(".switched tbody tr");
    const [before, count] = [await picture(page, "explorer"), await rows.count()];
    assert.ok(count > 3 && count < 50, `${count} rows`);
    assert.equal(await rows.filter({ hasText: "★" }).count(), 1);
    await section.locator("fieldset").getByText("8 of 12 drives busy").click();
    const other = await picture(page, "explorer");
    assert.ok(other !== before, "another load looks the same");
    await section.locator("fieldset").getByText("Energy").click();
    assert.ok((await picture(page, "explorer")) !== other, "energy looks like cost");
    assert.match(await section.locator(".switched caption").innerText(), /8 of 12 drives busy.*energy, p99 and throughput/);
  })],
  ["a dot of a sweep tells its run", (chromium) => on(chromium, "sweep", async (page) => {
    const chart = page.locator("#explorer .chart").first();
    await chart.scrollIntoViewIfNeeded();
    // Dots with a rim are on the front.
    const dots = chart.locator("svg path[stroke='#1c2127'][fill^='#']");
    assert.ok((await dots.count()) > 2);
    const box = await dots.last().boundingBox();
    assert.ok(box, "no dot is on the front");
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    assert.match((await chart.locator(".tip").innerText()).replace(/\s+/g, " "), /\db Cores of a drive \d Map in DRAM \d+ % Price of a drive \$\d+ Energy per GB moved .*On this front yes/);
  })],
  ["the other sections of a sweep show what serves alike, without ranking loads", (chromium) => on(chromium, "sweep", async (page) => {
    const heads = await page.locator("#summary thead th").allInnerTexts();
    assert.ok(heads.length >= 3 && heads.length <= 7, heads.join());
    assert.ok(heads.includes("conv 8b") && heads.some((head) => /^xbof \dc \d+% 4b$/.test(head)), heads.join());
    assert.equal(await page.locator("#summary td.best").count(), 0);
    assert.match(await page.locator("#explorer").innerText(), /The sections below show conv 8b/);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280);
  })],
  ["print shows every load and price of a sweep", (chromium) => on(chromium, "sweep", async (page) => {
    await medium(page, "print");
    assert.equal(await page.locator("#explorer .chart").count(), 12);
    assert.equal(await page.locator("#explorer details tbody tr").count(), 150);
    const wide = await page.evaluate(() => {
      const right = document.querySelector("main")?.getBoundingClientRect().right ?? 0;
      return [...document.querySelectorAll("#explorer svg, #explorer table")].filter((one) => one.getBoundingClientRect().right > right + 1).map((one) => one.outerHTML.slice(0, 80));
    });
    assert.deepEqual(wide, []);
  })],
  ["a sweep with hostile names and missing figures is text and says what is missing", (chromium) => on(chromium, "hostile-sweep", async (page) => {
    assert.equal(await page.evaluate(() => (window as { broken?: number }).broken), undefined);
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.doesNotMatch(await page.locator("main").innerText(), /undefined|NaN|Infinity|null/);
    assert.match(await page.locator("[role=alert]").innerText(), /12 GiB read, 11 GiB from flash/);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280);
  })],
  ["a report without a sweep has no explorer", (chromium) => on(chromium, "demo", async (page) => assert.equal(await page.locator("#explorer").count(), 0))],
  ["one design is not compared with itself", (chromium) => on(chromium, "one-design", async (page) => {
    assert.equal(await page.locator("td.best").count(), 0);
    assert.match(await page.locator("#lending").innerText(), /Nothing is lent/);
  })],
  ["one drive and one interval are drawn", async (chromium) => {
    for (const name of ["one-drive", "one-interval"]) await on(chromium, name, async (page) => {
      for (const section of ["utilization", "overtime"]) assert.ok((await marks(page, section)) > 0);
    });
  }],
  ["a hundred drives stay legible", (chromium) => on(chromium, "hundred-drives", async (page) => {
    const labels = page.locator("#utilization .chart svg text");
    assert.ok((await labels.filter({ hasText: "busy-" }).count()) >= 8);
    const height = (await page.locator("#utilization .chart").boundingBox())?.height ?? 0;
    assert.ok(height >= 700 && height < 1200, `${height} px`);
    assert.ok((await page.locator("#lending .chart svg text").count()) < 120);
  })],
  ["without intervals, histograms and figures the page says what is missing", (chromium) => on(chromium, "hollow", async (page) => {
    const text = await page.locator("main").innerText();
    for (const words of ["No interval was recorded", "there is no distribution", "nothing to split", "Nothing is lent", "Nothing was written"]) assert.ok(text.includes(words), words);
    assert.doesNotMatch(text, /undefined|NaN|Infinity/);
  })],
  ["a sweep of which some runs are shown lists all of them", (chromium) => on(chromium, "some-runs", async (page) => {
    assert.equal(await page.locator("#explorer").count(), 0);
    assert.match(await page.locator("#runs .finding").innerText(), /^\d of 150 runs are shown one by one\.$/);
    assert.equal(await page.locator("#runs tbody tr").count(), 150);
  })],
  ["a report without a design still opens", (chromium) => on(chromium, "none", async (page) => assert.match(await page.locator("#summary").innerText(), /No design was finished/))],
  ["broken laws and an interrupted run come first", (chromium) => on(chromium, "broken", async (page) => {
    const alerts = await page.locator("[role=alert]").allInnerTexts();
    assert.equal(alerts.length, 2);
    assert.match(alerts.join(" "), /interrupted.*Little's law/s);
    assert.ok(((await page.locator("#laws").boundingBox())?.y ?? 9999) < 800, "the warning is not on the first screen");
  })],
  ["a page of charts draws each of them, with its units", (chromium) => on(chromium, "charts", async (page) => {
    assert.equal(await page.title(), "charts – Flashyard report");
    // Ten histograms with their areas; two lines; a mark a point; bars of three groups but the one that is missing.
    for (const [section, least] of [["wear", 20], ["amplification", 2], ["capacity", 40], ["lifetimes", 5]] as const) {
      const found = await marks(page, section);
      assert.ok(found >= least, `${section} has ${found} marks, not ${least}`);
    }
    const texts = (section: string): Promise<string[]> => page.locator(`#${section} .chart svg text`).allTextContents();
    assert.ok((await texts("amplification")).some((text) => /^\d+\sGB$/.test(text)), "bytes have no unit");
    assert.ok((await texts("wear")).some((text) => /\d\s%$/.test(text)), "shares are no percent");
    assert.ok((await texts("lifetimes")).some((text) => /^1\.33\stimes$/.test(text)), "bars have no unit");
    assert.match(await page.locator("#nothing").innerText(), /Nothing was asked for/);
    assert.equal(await page.locator("#wear details tbody tr").count(), 2);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280, "the page scrolls sideways");
  })],
  ["panels of charts are chosen one at a time, and all printed", (chromium) => on(chromium, "charts", async (page) => {
    assert.equal(await page.locator("#capacity .chart").count(), 2);
    await page.locator("#capacity fieldset").getByText("ycsb-a").click();
    assert.equal(await page.locator("#capacity .chart").count(), 1);
    const chart = page.locator("#capacity .chart");
    await chart.scrollIntoViewIfNeeded();
    const at = await chart.evaluate((place) => {
      // Marks are the smallest things in the chart.
      const boxes = [...place.querySelectorAll("svg path")].map((one) => one.getBoundingClientRect()).filter((box) => box.width > 2 && box.width < 7 && Math.abs(box.width - box.height) < 1);
      const last = boxes[boxes.length - 1];
      return last ? [last.x + last.width / 2, last.y + last.height / 2] as const : null;
    });
    assert.ok(at, "the curve has no marks");
    await page.mouse.move(at[0], at[1]);
    assert.match((await chart.locator(".tip").innerText()).replace(/\s+/g, " "), /capacity left: [\d.]+ % cv-tuned [\d.]+ %/);
    await medium(page, "print");
    assert.equal(await page.locator("#capacity .chart").count(), 3);
    assert.equal(await page.locator("details:not([open])").count(), 0);
    const wide = await page.evaluate(() => {
      const right = document.querySelector("main")?.getBoundingClientRect().right ?? 0;
      return [...document.querySelectorAll("svg, table")].filter((one) => one.getBoundingClientRect().right > right + 1).map((one) => one.outerHTML.slice(0, 80));
    });
    assert.deepEqual(wide, []);
  })],
  ["charts with hostile names are text", (chromium) => on(chromium, "hostile-charts", async (page) => {
    assert.equal(await page.locator("h1").textContent(), HOSTILE);
    assert.equal(await page.evaluate(() => (window as { broken?: number }).broken), undefined);
    assert.equal(await page.locator("main img, main script").count(), 0);
    const chart = page.locator("#amplification .chart");
    await chart.scrollIntoViewIfNeeded();
    await chart.hover();
    assert.match((await chart.locator(".tip").textContent()) ?? "", /<img src=x/);
    assert.match(await page.locator("[role=alert]").innerText(), /interrupted/);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280);
  })],
  ["charts fit a narrow screen", (chromium) => on(chromium, "charts", async (page) => {
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 420);
  }, { viewport: { width: 420, height: 800 } })],
  ["a narrow screen does not scroll sideways", (chromium) => on(chromium, "demo", async (page) => {
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 420);
  }, { viewport: { width: 420, height: 800 } })],
];

if (!installed()) {
  console.error("SKIPPED: no chromium is installed; the report page was not tested in a browser");
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
console.log(`${TESTS.length - failed} of ${TESTS.length} browser tests passed`);
process.exit(failed === 0 ? 0 : 1);
