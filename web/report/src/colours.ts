// One colour for each design, cause and part, the same in every chart. Designs: Okabe and Ito; causes: Paul Tol,
// "muted". Both are told apart with the common kinds of colour blindness.

export interface Hue {
  light: string;
  dark: string;
}

const DESIGNS: Record<string, Hue> = {
  conv: { light: "#666666", dark: "#b4b4b4" },
  oc: { light: "#b85c95", dark: "#d98fba" },
  shrunk: { light: "#d48f00", dark: "#e69f00" },
  vh: { light: "#3a9fd6", dark: "#6cc0ee" },
  "vh-ideal": { light: "#0064a4", dark: "#3d95d1" },
  proch: { light: "#00855f", dark: "#19b388" },
  xbof: { light: "#d04e00", dark: "#ef7a35" },
};

const TOL_MUTED: Hue[] = [
  { light: "#ddcc77", dark: "#ddcc77" },
  { light: "#999933", dark: "#a9a943" },
  { light: "#332288", dark: "#7d6fe0" },
  { light: "#aa4499", dark: "#c463b4" },
  { light: "#88ccee", dark: "#88ccee" },
  { light: "#44aa99", dark: "#44aa99" },
  { light: "#117733", dark: "#2f9a52" },
  { light: "#882255", dark: "#b54a80" },
  { light: "#cc6677", dark: "#d97d8c" },
  { light: "#b8b8b8", dark: "#8a8f98" },
];

/** Causes that a system has of its own, after the ten of drives: Paul Tol, "bright". */
const TOL_BRIGHT: Hue[] = [
  { light: "#ee6677", dark: "#f08793" },
  { light: "#4477aa", dark: "#6f9fcf" },
  { light: "#228833", dark: "#46a857" },
  { light: "#aa3377", dark: "#c9609b" },
];

const PARTS: Record<string, Hue> = {
  cores: { light: "#4477aa", dark: "#6f9fcf" },
  dram: { light: "#ccbb44", dark: "#d8c95c" },
  link: { light: "#66ccee", dark: "#66ccee" },
  flash: { light: "#aa3377", dark: "#c9609b" },
};

/** Dashes tell lines apart where colour does not. */
const DASHES: (number[] | "solid")[] = ["solid", [7, 3], [2, 2], [9, 3, 2, 3], [12, 4], [4, 2], [1, 3]];

/** Colour of every run of a report: the first of a known design gets the design's, others what is left, in order. */
export function designHues(names: readonly string[]): Hue[] {
  const spare = [...Object.entries(DESIGNS).filter(([name]) => !names.includes(name)).map(([, hue]) => hue), ...TOL_MUTED];
  let used = 0;
  return names.map((name, index) => (names.indexOf(name) === index ? known(name) : undefined) ?? cycled(spare, used++));
}

const known = (name: string): Hue | undefined => (Object.hasOwn(DESIGNS, name) ? DESIGNS[name] : undefined);

export const designDash = (index: number): number[] | "solid" => DASHES[index % DASHES.length] ?? "solid";
export const causeHue = (index: number): Hue => cycled([...TOL_MUTED, ...TOL_BRIGHT], index);
export const lenderHue = (index: number): Hue => cycled([3, 5, 4, 7, 0, 6, 8, 2, 1].map((i) => cycled(TOL_MUTED, i)), index);
export const partHue = (part: string): Hue => PARTS[part] ?? REST;
/** What is summed up as "others". */
export const REST: Hue = { light: "#b8b8b8", dark: "#7b818b" };

/** From nothing to everything; lightness alone tells the order (after viridis, cut at the ends). */
export const RAMP: { light: string[]; dark: string[] } = {
  light: ["#f4f6f8", "#cfe1d4", "#86c5b0", "#3d9c9c", "#2b6a8a", "#2f3c6e", "#2a1346"],
  dark: ["#20262e", "#2b3f63", "#2b6a8a", "#3d9c9c", "#7cc596", "#c9df7a", "#fdf3a0"],
};

function cycled(hues: readonly Hue[], index: number): Hue {
  return hues[index % hues.length] ?? REST;
}
