// Elements from text. Text of a report is never parsed as markup.

type Child = Node | string | null | undefined;
type Attributes = Record<string, string | number | boolean | undefined>;

/** An element with attributes and children; `true` writes an empty attribute, `false` and `undefined` none. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
}

/** A table whose first column names its rows; numbers are right-aligned by the style sheet. */
export function table(caption: string, head: readonly string[], rows: readonly (readonly (string | Node)[])[]): HTMLElement {
  const cell = (content: string | Node, index: number): HTMLElement =>
    index === 0 ? element("th", { scope: "row" }, content) : element("td", {}, content);
  return scrolling(
    caption,
    element(
      "table",
      {},
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, head.map((title) => element("th", { scope: "col" }, title)))),
      element("tbody", {}, rows.map((row) => element("tr", {}, row.map(cell)))),
    ),
  );
}

/** Lets a wide table scroll by itself, with the keyboard too, and says so where it is wider than its place. */
export function scrolling(label: string, content: HTMLElement): HTMLElement {
  const scroll = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, content);
  const whole = element("div", {}, element("p", { class: "sideways" }, "The table goes on to the right: scroll it sideways →"), scroll);
  new ResizeObserver(() => whole.classList.toggle("scrolls", scroll.scrollWidth > scroll.clientWidth + 1)).observe(scroll);
  return whole;
}

/** Content that opens on demand on the screen and is always open in print. */
export function folded(summary: string, ...content: Node[]): HTMLDetailsElement {
  return element("details", {}, element("summary", {}, summary), ...content);
}

/** One section: a question, the finding that answers it, if there is one, and what shows it. */
export function section(id: string, title: string, finding: string, ...content: (Node | null)[]): HTMLElement {
  return element(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, title),
    finding === "" ? null : element("p", { class: "finding" }, finding),
    ...content,
  );
}
