// Pictures of the live page to look at: `npm run shots-dash`, or with the address of a server that runs.

import { mkdirSync } from "node:fs";
import { browser } from "../../report/browser/chromium.ts";
import { Served } from "./server.ts";

const OUT = "out/browser";
mkdirSync(OUT, { recursive: true });
const given = process.argv[2];
const served = given === undefined ? new Served() : undefined;
const address = given ?? (await served?.start()) ?? "";
const chromium = await browser();
for (const [name, options] of [
  ["dash-light", { viewport: { width: 1440, height: 1830 }, colorScheme: "light" }],
  ["dash-dark", { viewport: { width: 1440, height: 1830 }, colorScheme: "dark" }],
  ["dash-narrow", { viewport: { width: 420, height: 900 }, colorScheme: "light" }],
] as const) {
  const page = await chromium.newPage(options);
  page.on("console", (message) => console.log(`${name} ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => console.log(error));
  await page.goto(served ? `${address}#token=${served.token}` : address);
  await page.waitForTimeout(1500);
  if (served && name === "dash-dark") {
    served.jbof.command({ command: "pull", drive: "idle-7" });
    await page.getByText("2 s in steps").click();
    await page.waitForTimeout(900);
    served.jbof.command({ command: "insert", drive: "idle-7" });
    await page.waitForTimeout(400);
  }
  await page.screenshot({ path: `${OUT}/${name}.png`, fullPage: true });
  await page.close();
}
await chromium.close();
await served?.stop();
