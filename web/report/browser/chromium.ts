// The browser that is installed; none is downloaded.

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import type { Browser } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export const installed = (): string | undefined => PLACES.find((place) => existsSync(place));

export function browser(): Promise<Browser> {
  const executablePath = installed();
  if (!executablePath) throw new Error(`no browser at ${PLACES.join(", ")}`);
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
}
