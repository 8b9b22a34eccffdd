// The first line of the page: what runs, whether the page still hears of it, and what concerns all drives.

import { element } from "../../report/src/dom.ts";
import { seconds } from "../../report/src/format.ts";
import type { Order } from "./board.ts";
import type { Snapshot } from "./schema.ts";
import type { Link } from "./stream.ts";
import type { View } from "./rowcharts.ts";

/** Why the buttons of a page without the token do nothing. */
export const READ_ONLY = "This page only looks. To give commands, open the address that the server printed, with what is behind the #.";

export interface Top {
  place: HTMLElement;
  banner: HTMLElement;
  show: (snapshot: Snapshot) => void;
  link: (link: Link) => void;
  /** Whether the page is to stand still. */
  held: () => boolean;
  window: () => View["window"];
  /** Registers what is done when the window changes, or the page moves on. */
  changed: (then: () => void) => void;
}

export function heading(order: Order, may: boolean): Top {
  let then = (): void => {};
  let window: View["window"] = "minute";
  const [title, link, banner] = [element("h1", {}, "Flashyard live"), element("span", { class: "link", role: "status" }, "connecting"), element("p", { class: "alert banner", role: "alert", hidden: true })];
  const hold = toggle("Hold", "Let the page stand still; nothing is lost meanwhile", (on) => {
    hold.setAttribute("aria-pressed", String(!on));
    then();
  });
  const harvest = toggle("Harvesting", "Whether drives lend and borrow", (on) => void order({ command: "harvest", on: !on }));
  let power = true;
  const cut = element("button", { type: "button", class: "danger" }, "Cut all power");
  cut.addEventListener("click", () => {
    if (!power || confirm("Cut the power of all drives? Their hosts lose them until it is restored.")) void order({ command: "power", on: !power });
  });
  for (const button of may ? [] : [harvest, cut]) [button.disabled, button.title] = [true, READ_ONLY];
  const spans = radios((chosen) => {
    window = chosen;
    then();
  });
  return {
    place: element("header", { class: "top" }, element("div", { class: "title" }, title, element("p", { class: "kind", title: may ? "" : READ_ONLY }, may ? "Flashyard live" : "Flashyard live, read only")), link, spans, hold, harvest, cut),
    banner,
    show: (snapshot) => {
      if (title.textContent !== snapshot.scenario) {
        title.textContent = snapshot.scenario;
        document.title = `${snapshot.scenario} – Flashyard live`;
      }
      harvest.setAttribute("aria-pressed", String(snapshot.harvest));
      harvest.textContent = snapshot.harvest ? "Harvesting is on" : "Harvesting is off";
      power = !snapshot.drives.some((drive) => drive.state === "off");
      cut.textContent = power ? "Cut all power" : "Restore power";
      cut.className = power ? "danger" : "";
    },
    link: (state) => {
      const words = { connecting: "connecting", live: "live", lost: "connection lost", silent: "no news" }[state.kind];
      if (link.textContent !== words) link.textContent = words;
      const bad = state.kind === "lost" || state.kind === "silent";
      link.classList.toggle("lost", bad);
      banner.hidden = !bad;
      if (state.kind === "lost") banner.textContent = "Connection lost. The figures are the last that came; trying again every second.";
      if (state.kind === "silent") banner.textContent = `Connected, but no news for ${seconds(Math.round((performance.now() - state.since) / 1000))}. The figures are the last that came.`;
    },
    held: () => hold.getAttribute("aria-pressed") === "true",
    window: () => window,
    changed: (done) => (then = done),
  };
}

function toggle(text: string, title: string, pressed: (on: boolean) => void): HTMLButtonElement {
  const button = element("button", { type: "button", "aria-pressed": "false", title }, text);
  button.addEventListener("click", () => pressed(button.getAttribute("aria-pressed") === "true"));
  return button;
}

function radios(chosen: (window: View["window"]) => void): HTMLElement {
  const options: [View["window"], string][] = [["minute", "60 s"], ["moment", "2 s in steps of 10 ms"]];
  const buttons = options.map(([window, text], index) => {
    const input = element("input", { type: "radio", name: "window", value: window, checked: index === 0 });
    input.addEventListener("change", () => chosen(window));
    return element("label", {}, input, element("span", {}, text));
  });
  return element("fieldset", {}, element("legend", {}, "Show"), buttons);
}
