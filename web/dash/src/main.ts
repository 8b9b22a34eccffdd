// The page: builds its parts once and lets them follow the stream.

import { element } from "../../report/src/dom.ts";
import { cores, mebibytes } from "../../report/src/format.ts";
import { Board } from "./board.ts";
import { FlowChart } from "./flowchart.ts";
import { forgetThemes, whenSeen } from "./livechart.ts";
import { Log } from "./log.ts";
import { Past } from "./past.ts";
import type { Command, Snapshot } from "./schema.ts";
import { follow, send, token } from "./stream.ts";
import type { Link } from "./stream.ts";
import { Tiles } from "./tiles.ts";
import { READ_ONLY, heading } from "./top.ts";

/** Milliseconds between drawings of the charts of the rows: a minute of half seconds changes slowly. */
const DRAW_MS = { minute: 500, moment: 200 };
const SAID_MS = 8000;
/** Snapshots that are kept while the page is held: a minute of them. */
const WAITING_MAX = 600;

function show(): void {
  const past = new Past();
  const said = element("p", { class: "alert said", role: "alert" });
  let quiet = 0;
  const key = token();
  const order = async (command: Command): Promise<string | null> => {
    const refused = key === null ? READ_ONLY : await send(command, key);
    said.textContent = refused === null ? "" : `Not done: ${refused}`;
    clearTimeout(quiet);
    quiet = window.setTimeout(() => (said.textContent = ""), SAID_MS);
    return refused;
  };
  const [top, tiles, board, log] = [heading(order, key !== null), new Tiles(), new Board(order, key !== null), new Log()];
  let segment = 0;
  const flows = [
    { title: "Cores lent now", chart: new FlowChart("processor", "Cores lent now", cores), none: "No cores are lent." },
    { title: "Mapping memory lent now", chart: new FlowChart("memory", "Mapping memory lent now", (mib) => mebibytes(mib)), none: "No memory is lent." },
  ];
  const notes = flows.map(() => element("span"));
  const pictures = flows.map(({ title, chart }, index) =>
    element("section", { "aria-label": title }, element("h2", {}, title), element("div", { class: "sides" }, element("span", {}, "lenders"), notes[index], element("span", {}, "borrowers")), chart.chart.place),
  );
  const events = element("section", { "aria-label": "Events" }, element("h2", {}, "Events"), log.place);
  document.querySelector("main")?.replaceChildren(top.place, top.banner, tiles.place, element("div", { class: "flows" }, ...pictures, events), board.place, said);

  let fresh = false;
  const figures = (snapshot: Snapshot): void => {
    segment = snapshot.segment_mib ?? 0;
    top.show(snapshot);
    tiles.show(snapshot, past);
    board.show(snapshot.drives);
    log.show(past.events);
    flows.forEach(({ chart, none }, index) => {
      chart.take(snapshot, past);
      const total = chart.total();
      const pieces = index === 1 && segment > 0 ? ` in segments of ${mebibytes(segment)}` : "";
      const note = notes[index];
      if (note) note.textContent = total > 0 ? `${index === 1 ? mebibytes(total) : cores(total)} in all${pieces}` : none;
    });
    fresh = true;
  };
  const waiting: Snapshot[] = [];
  const goOn = (): void => {
    for (const snapshot of waiting.splice(0)) past.add(snapshot);
    if (past.latest) figures(past.latest);
  };
  const link = (state: Link): void => {
    top.link(state);
    document.body.classList.toggle("stale", state.kind === "lost" || state.kind === "silent");
  };
  follow({
    history: (snapshots) => {
      waiting.length = 0;
      past.clear();
      snapshots.forEach((snapshot) => past.add(snapshot));
    },
    snapshot: (snapshot) => {
      // Tooltips of a page that is held are about what it shows.
      waiting.push(snapshot);
      waiting.splice(0, waiting.length - WAITING_MAX);
      if (!top.held()) goOn();
    },
    link,
  });

  let drawnAt = 0;
  const frame = (now: number): void => {
    if (!top.held()) for (const { chart } of flows) chart.tick(now);
    if (fresh && now - drawnAt >= DRAW_MS[top.window()]) {
      [drawnAt, fresh] = [now, false];
      board.draw(past, top.window());
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);

  const again = (): void => {
    forgetThemes();
    [drawnAt, fresh] = [0, past.latest !== undefined];
  };
  whenSeen(() => {
    [drawnAt, fresh] = [0, past.latest !== undefined];
  });
  top.changed(() => {
    if (!top.held()) goOn();
    again();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("resize", again);
}

show();
