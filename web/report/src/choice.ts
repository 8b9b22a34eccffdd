// A part of the page with choices: on the screen one at a time, in print all.

import { drawCharts } from "./chart.ts";
import { element } from "./dom.ts";
import { onPrint } from "./print.ts";

export interface Choice {
  /** What is chosen, such as "Design". */
  legend: string;
  options: readonly string[];
  /** Index of the option shown first. */
  first: number;
}

let groups = 0;

/**
 * Radio buttons, one group a choice, and the content for what is chosen.
 * `content` gets the index of the chosen option of each group. `printed` gives what print shows.
 */
export function switched(choices: readonly Choice[], content: (chosen: number[]) => Node[], printed: () => Node[]): HTMLElement {
  const chosen = choices.map((choice) => choice.first);
  const body = element("div", { class: "switched", "aria-live": "polite" });
  const show = (): void => {
    body.replaceChildren(...content(chosen));
    drawCharts();
  };
  const controls = choices.map((choice, index) =>
    radios(choice, (option) => {
      chosen[index] = option;
      show();
    }),
  );
  body.replaceChildren(...content(chosen));
  onPrint(
    () => body.replaceChildren(...printed()),
    () => body.replaceChildren(...content(chosen)),
  );
  return element("div", {}, element("div", { class: "controls" }, controls.filter((_, index) => (choices[index]?.options.length ?? 0) > 1)), body);
}

function radios(choice: Choice, changed: (option: number) => void): HTMLElement {
  const name = `choice-${(groups += 1)}`;
  const buttons = choice.options.map((option, index) => {
    const input = element("input", { type: "radio", name, value: index, checked: index === choice.first });
    input.addEventListener("change", () => changed(index));
    return element("label", {}, input, element("span", {}, option));
  });
  return element("fieldset", {}, element("legend", {}, choice.legend), buttons);
}
