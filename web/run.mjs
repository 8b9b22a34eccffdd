// Runs TypeScript with any Node from 20 on: bundles into out/, then `node FILE` or, with --test, `node --test` on
// every *.test.ts of a directory.

import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const home = dirname(fileURLToPath(import.meta.url));
const [first, ...rest] = process.argv.slice(2);
const testing = first === "--test";
const from = testing ? rest.shift() : first;
const entries = testing ? readdirSync(join(home, from)).filter((name) => name.endsWith(".test.ts")).map((name) => join(from, name)) : [from];
const out = join(home, "out", testing ? "test" : "run");
rmSync(out, { recursive: true, force: true });
await build({ absWorkingDir: home, entryPoints: entries, outdir: out, outExtension: { ".js": ".mjs" }, bundle: true, platform: "node", format: "esm", target: "node20", packages: "external", logLevel: "warning" });
const built = entries.map((entry) => join(out, basename(entry).replace(/ts$/, "mjs")));
const { status } = spawnSync(process.execPath, [...(testing ? ["--test", "--test-reporter=dot"] : []), ...built, ...rest], { cwd: home, stdio: "inherit" });
process.exit(status ?? 1);
