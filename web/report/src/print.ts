// Printing shows everything: folded parts open, and parts with a choice show all choices.

import { drawCharts } from "./chart.ts";

const changes: { begin: () => void; end: () => void }[] = [];
let opened: HTMLDetailsElement[] = [];

/** Registers what a part of the page does when printing begins and ends. */
export function onPrint(begin: () => void, end: () => void): void {
  changes.push({ begin, end });
}

/** Follows the browser into print and back. Both events mean the same; either may be missing. */
export function watchPrinting(): void {
  addEventListener("beforeprint", begin);
  addEventListener("afterprint", end);
  matchMedia("print").addEventListener("change", (change) => (change.matches ? begin() : end()));
}

function begin(): void {
  const root = document.documentElement;
  if (root.classList.contains("printing")) return;
  root.classList.add("printing");
  opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
  for (const details of opened) details.open = true;
  for (const change of changes) change.begin();
  drawCharts(true);
}

function end(): void {
  const root = document.documentElement;
  if (!root.classList.contains("printing")) return;
  root.classList.remove("printing");
  for (const details of opened) details.open = false;
  opened = [];
  for (const change of changes) change.end();
  drawCharts(true);
}
