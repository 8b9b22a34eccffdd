// Pictures of a page to look at: `node run.mjs report/browser/shots.ts CASE|FILE.html`.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { CASES, OUT, pageOf } from "./pages.ts";
import { browser } from "./chromium.ts";

const what = process.argv[2] ?? "demo";
const chosen = CASES[what];
const name = chosen ? what : "file";
if (!chosen && !existsSync(what)) throw new Error(`${what} is neither a case (${Object.keys(CASES).join(", ")}) nor a file`);
const address = chosen ? pageOf(what, chosen()) : pathToFileURL(resolve(what)).href;
const chromium = await browser();
for (const colorScheme of ["light", "dark"] as const) {
  const page = await chromium.newPage({ viewport: { width: 1280, height: 800 }, colorScheme });
  page.on("console", (message) => console.log(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => console.log(error));
  await page.goto(address);
  await page.screenshot({ path: `${OUT}/${name}-${colorScheme}.png`, fullPage: true });
  // Parts of a height that a screen shows without shrinking.
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let part = 0; part * 1400 < height; part += 1) {
    const clip = { x: 0, y: part * 1400, width: 1280, height: Math.min(1400, height - part * 1400) };
    await page.screenshot({ path: `${OUT}/${name}-${colorScheme}-${part}.png`, fullPage: true, clip });
  }
  if (colorScheme === "light") await page.pdf({ path: `${OUT}/${name}.pdf`, preferCSSPageSize: true, printBackground: false });
  await page.close();
}
await chromium.close();
console.log(`${OUT}/${name}-light.png, ${name}-dark.png, ${name}.pdf`);
