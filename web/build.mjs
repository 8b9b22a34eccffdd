// Makes dist/report.html from report/, dist/dash.html from dash/ and dist/volumes.html from volumes/: each one file with style, program and licences.
// With --check it only compares: exit status 1 when a committed file is not what a fresh build gives.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const home = dirname(fileURLToPath(import.meta.url));
const text = (...path) => readFileSync(join(home, ...path), "utf8").replaceAll("\r\n", "\n");
/** `isPlain`: nothing of others is in it. `place` is where `html_page` in crates/pure/report puts the document; the dashboard gets its figures by streaming. */
const PAGES = [{ name: "report", place: "%REPORT_DOCUMENT%" }, { name: "dash" }, { name: "volumes", isPlain: true }];
const SIZE_MAX = 1_500_000;

/** Licences ask to stay with what is copied, also in minified form. */
function notices() {
  const parts = [
    ["Apache ECharts (Apache-2.0)", text("node_modules/echarts/NOTICE"), text("node_modules/echarts/LICENSE")],
    ["zrender (BSD-3-Clause)", text("node_modules/zrender/LICENSE")],
    ["tslib (0BSD)", text("node_modules/tslib/LICENSE.txt")],
  ];
  const body = parts.map(([title, ...texts]) => `== ${title}\n${texts.map((one) => one.trim()).join("\n\n")}`).join("\n\n");
  const whole = `This file is part of Flashyard (Apache-2.0). It contains:\n\n${body}`;
  return `/*!\n${whole.replaceAll("*/", "* /").replaceAll("</", "< /")}\n*/`;
}

async function page({ name, place, isPlain }) {
  const options = { bundle: true, minify: true, write: false, absWorkingDir: home, legalComments: "none", target: "es2022", charset: "utf8", logLevel: "warning" };
  const script = await build({ ...options, entryPoints: [`${name}/src/main.ts`], format: "iife", define: { "process.env.NODE_ENV": '"production"' } });
  const style = await build({ ...options, entryPoints: [`${name}/style.css`] });
  // Neither may end its element early.
  const program = `${isPlain ? "" : `${notices()}\n`}${script.outputFiles[0].text.trim().replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--")}`;
  const hash = createHash("sha256").update(program).digest("base64");
  const parts = { "%SCRIPT_HASH%": hash, "%STYLE%": style.outputFiles[0].text.trim(), "%SCRIPT%": program };
  let html = text(name, "template.html");
  for (const [at, content] of Object.entries(parts)) html = html.replace(at, () => content);
  if (place && html.split(place).length !== 2) throw new Error(`${place} must stand in the page exactly once`);
  if (Buffer.byteLength(html) > SIZE_MAX) throw new Error(`${name} has ${Buffer.byteLength(html)} bytes, more than ${SIZE_MAX}`);
  return html;
}

let stale = false;
for (const one of PAGES) {
  const html = await page(one);
  const target = join(home, "dist", `${one.name}.html`);
  if (!process.argv.includes("--check")) {
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, html);
    console.log(`dist/${one.name}.html: ${Buffer.byteLength(html)} bytes`);
  } else if (text("dist", `${one.name}.html`) !== html) {
    console.error(`web/dist/${one.name}.html is not what web/${one.name} gives; run \`make web\` and commit the result`);
    stale = true;
  } else {
    console.log(`web/dist/${one.name}.html is up to date`);
  }
}
process.exit(stale ? 1 : 0);
