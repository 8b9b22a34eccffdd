// Serves the committed page with a made-up JBOF behind it, as crates/edge/dash serves it with a real one.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Jbof } from "../fixture/jbof.ts";
import type { Command, Snapshot } from "../src/schema.ts";

const EVENTS_KEPT = 100;
const HISTORY_EVERY = 4;
const HISTORY_KEPT = 150;

export class Served {
  readonly commands: Command[] = [];
  readonly token = "0123456789abcdef";
  /** Whether time goes on. */
  running = true;
  /** What is changed in every snapshot before it is sent. */
  alter: (snapshot: Snapshot) => void = () => {};
  private readonly history: Snapshot[] = [];
  private events: Snapshot["events"] = [];
  private latest: Snapshot | undefined;
  private readonly streams = new Set<ServerResponse>();
  private readonly timer: NodeJS.Timeout;
  private server: Server | undefined;
  private port = 0;

  /** `warm` snapshots have passed before the first page comes. */
  constructor(readonly jbof = new Jbof(), warm = 620) {
    for (let turn = 0; turn < warm; turn += 1) this.turn();
    this.timer = setInterval(() => {
      if (this.running) this.turn();
    }, 100);
  }

  /** Moves on by 100 ms and tells every page. */
  turn(): void {
    const snapshot = this.jbof.next();
    if (this.latest && snapshot.number <= this.latest.number) [this.events, this.history.length] = [[], 0];
    this.alter(snapshot);
    this.events = [...this.events, ...snapshot.events].slice(-EVENTS_KEPT);
    if (snapshot.number % HISTORY_EVERY === 0) this.history.push({ ...snapshot, events: [], points: { ...snapshot.points, drives: [] } });
    this.history.splice(0, this.history.length - HISTORY_KEPT);
    this.latest = { ...snapshot, events: this.events };
    for (const stream of this.streams) stream.write(`data: ${JSON.stringify(this.latest)}\n\n`);
  }

  /** Begins to listen, on the port it had before if it had one; the address of the page. */
  async start(): Promise<string> {
    const server = createServer((request, response) => this.answer(request, response));
    await new Promise<void>((done) => server.listen(this.port, "127.0.0.1", done));
    this.server = server;
    this.port = (server.address() as AddressInfo).port;
    return `http://127.0.0.1:${this.port}/`;
  }

  /** Breaks every connection and does not listen any more. */
  async cut(): Promise<void> {
    this.streams.clear();
    this.server?.closeAllConnections();
    await new Promise((done) => (this.server ? this.server.close(done) : done(undefined)));
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    await this.cut();
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.url === "/") {
      response.setHeader("Content-Type", "text/html; charset=utf-8").end(readFileSync("dist/dash.html"));
    } else if (request.url === "/events") {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      response.write(`event: history\nretry: 300\ndata: ${JSON.stringify(this.history)}\n\n`);
      if (this.latest) response.write(`data: ${JSON.stringify(this.latest)}\n\n`);
      this.streams.add(response);
      response.on("close", () => this.streams.delete(response));
    } else if (request.url === "/control" && request.method === "POST") {
      void this.control(request, response);
    } else {
      response.writeHead(404).end();
    }
  }

  private async control(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers.authorization !== `Bearer ${this.token}`) {
      response.writeHead(401).end("commands need the token");
      return;
    }
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const command = JSON.parse(Buffer.concat(parts).toString()) as Command;
    this.commands.push(command);
    const refused = this.jbof.command(command);
    response.writeHead(refused === null ? 202 : 409).end(refused ?? "taken");
  }
}
