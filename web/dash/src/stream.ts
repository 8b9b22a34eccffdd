// The connection to the server: snapshots in, commands out.

import type { Command, Snapshot } from "./schema.ts";

/** Without a snapshot for so long the figures are old. */
const STALE_MS = 3000;
const RETRY_MS = 1000;

export type Link = { kind: "connecting" } | { kind: "live" } | { kind: "lost" } | { kind: "silent"; since: number };

export interface Listener {
  /** The past, when the connection stands. */
  history: (snapshots: Snapshot[]) => void;
  snapshot: (snapshot: Snapshot) => void;
  link: (link: Link) => void;
}

/** Follows the server for as long as the page is open; after a break it begins again by itself. */
export function follow(listener: Listener): void {
  let heard = performance.now();
  let lost = false;
  const open = (): void => {
    const source = new EventSource("events");
    source.addEventListener("history", (event) => {
      [heard, lost] = [performance.now(), false];
      listener.history(JSON.parse(event.data as string) as Snapshot[]);
      listener.link({ kind: "live" });
    });
    source.addEventListener("message", (event) => {
      heard = performance.now();
      listener.snapshot(JSON.parse(event.data as string) as Snapshot);
      listener.link({ kind: "live" });
    });
    source.addEventListener("error", () => {
      lost = true;
      listener.link({ kind: "lost" });
      // The browser tries again by itself after a break, but not after a refusal.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY_MS);
    });
  };
  setInterval(() => {
    if (!lost && performance.now() - heard > STALE_MS) listener.link({ kind: "silent", since: heard });
  }, 500);
  listener.link({ kind: "connecting" });
  open();
}

/** What the server wants to see with commands: it stands behind the # of the address that the server printed. It is taken out of the address, where others could read it, and kept as long as the tab. */
export function token(): string | null {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given !== null) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return given ?? sessionStorage.getItem("token");
}

/** Sends a command; a text says why it was not taken. */
export async function send(command: Command, token: string): Promise<string | null> {
  try {
    const answer = await fetch("control", { method: "POST", headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` }, body: JSON.stringify(command) });
    return answer.ok ? null : (await answer.text()) || `the server refused (${answer.status})`;
  } catch {
    return "the server cannot be reached";
  }
}
