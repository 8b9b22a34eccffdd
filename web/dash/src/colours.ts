// What is drawn in which colour on this page. Okabe and Ito; dashes tell lines apart where colour does not.

import type { Hue } from "../../report/src/colours.ts";

export const READ: Hue = { light: "#0072b2", dark: "#56b4e9" };
export const WRITE: Hue = { light: "#d55e00", dark: "#f08a3c" };

export const PERCENTILES = [
  { name: "p50", key: "p50", hue: { light: "#00714d", dark: "#3ccf9b" }, dash: "solid", css: "" },
  { name: "p99", key: "p99", hue: { light: "#0072b2", dark: "#56b4e9" }, dash: [6, 3], css: "dash" },
  { name: "p99.9", key: "p999", hue: { light: "#b85c95", dark: "#d98fba" }, dash: [2, 2], css: "dots" },
] as const;

/** Marks of events stand out from all of these. */
export const EVENT: Hue = { light: "#1c2127", dark: "#e4e7eb" };
