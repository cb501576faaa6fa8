import { EventEmitter } from "node:events";
import { pino } from "pino";
import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { snapshot, table } from "../../../test/support/route-table.ts";
import { claimsOf } from "../../../test/support/updates.ts";
import type { RegistrationMessage } from "../../mesh/contract/messages.ts";
import { createProxyRegistry } from "./proxy-registry.ts";
import { type ProxyStreamDeps, type ServerStream, serveProxyStream } from "./proxy-stream.ts";
import { createRegistrationTables } from "./registration-tables.ts";
import { createSharedTables } from "./shared-resources.ts";

const REGISTRATION: RegistrationMessage = {
  pod: { namespace: "ops", name: "d0", uid: "1" },
  proxyVersion: "",
  capabilities: ["type:routes"],
  streamNumber: 1,
  epoch: 0,
  route: claimsOf(),
};

const atOnce: ProxyStreamDeps["turns"] = { run: async (_, work) => work() };

it("a registration whose names are no names is refused before they go anywhere", () => {
  const clock = createFakeClock();
  const asked: string[] = [];
  const errors: { readonly code: number; readonly details: string }[] = [];
  const stream = Object.assign(new EventEmitter(), { getPeer: () => "127.0.0.1:9" });
  stream.on("error", (error) => errors.push(error));
  serveProxyStream(stream as unknown as ServerStream, {
    registry: createProxyRegistry({ log: pino({ level: "silent" }) }),
    judge: () => ({ kind: "serve" }),
    leadership: { epoch: 1 },
    registrations: { allow: (pod) => asked.push(pod) > 0 },
    tables: createRegistrationTables({ clock, tables: createSharedTables() }),
    turns: atOnce,
    cut: () => undefined,
    clock,
    log: pino({ level: "silent" }),
  });
  stream.emit("data", { registration: { ...REGISTRATION, pod: { namespace: "ops", name: "d".repeat(1_000_000), uid: "1" } } });
  expect(errors).toEqual([{ code: 3, details: "the first message must be a registration that names the pod" }]);
  expect(asked).toEqual([]);
});

it("a registration that tells far more than a proxy can have in doubt is refused", () => {
  const log = pino({ level: "silent" });
  const registry = createProxyRegistry({ log });
  const { stream, errors } = openStream({ registry, log });
  const many = Array.from({ length: 10_000 }, () => snapshot(table([], {})));
  stream.emit("data", { registration: { ...REGISTRATION, route: claimsOf(undefined, ...many) } });
  expect(errors).toMatchObject([{ code: 3 }]);
  expect([...registry.pods]).toEqual([]);
});

it("a proxy that reads nothing is cut off, and the log says which pod's it is", async () => {
  const clock = createFakeClock();
  const lines: { readonly msg: string; readonly pod?: string; readonly peer?: string }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const cut: string[] = [];
  const stream = Object.assign(new EventEmitter(), {
    write: () => undefined, // nothing is ever read
    sendMetadata: () => undefined,
    getPeer: () => "127.0.0.1:9",
    end: () => undefined,
  });
  serveProxyStream(stream as unknown as ServerStream, {
    registry: createProxyRegistry({ log }),
    judge: () => ({ kind: "serve" }),
    leadership: { epoch: 1 },
    registrations: { allow: () => true },
    tables: createRegistrationTables({ clock, tables: createSharedTables() }),
    turns: atOnce,
    cut: (peer) => void cut.push(peer),
    clock,
    log,
  });
  stream.emit("data", { registration: REGISTRATION }); // whose welcome is never read
  await clock.advance(30_000);
  expect(cut).toEqual(["127.0.0.1:9"]);
  expect(lines.find(({ msg }) => msg.startsWith("proxy reads nothing"))).toMatchObject({ pod: "ops/d0", peer: "127.0.0.1:9" });
});

it("a proxy that had to wait for the manager has as long for its promise as any other", async () => {
  const clock = createFakeClock();
  const errors: { readonly code: number }[] = [];
  const stream = Object.assign(new EventEmitter(), {
    getPeer: () => "127.0.0.1:9",
    write: (_message: unknown, done: () => void) => done(),
    sendMetadata: () => undefined,
  });
  stream.on("error", (error) => errors.push(error));
  const registry = createProxyRegistry({ log: pino({ level: "silent" }) });
  let [elsewhere, hasListed]: [string | undefined, boolean] = ["", false];
  serveProxyStream(stream as unknown as ServerStream, {
    registry,
    leaderElsewhere: () => elsewhere,
    judge: () => (hasListed ? { kind: "serve" } : { kind: "wait", message: "not listed" }),
    leadership: { epoch: 1 },
    registrations: { allow: () => true },
    tables: createRegistrationTables({ clock, tables: createSharedTables() }),
    turns: atOnce,
    cut: () => undefined,
    clock,
    log: pino({ level: "silent" }),
  });
  await clock.advance(4_700); // nobody leads
  elsewhere = undefined;
  await clock.advance(100);
  stream.emit("data", { registration: REGISTRATION });
  await clock.advance(4_900);
  hasListed = true;
  await clock.advance(200); // it is welcomed
  await clock.advance(1_000);
  stream.emit("data", { promise: { epoch: 1, tables: [] } });
  expect(errors).toEqual([]);
  expect(registry.facts("ops/d0")?.connected).toBe(true);
});

const fails = (): never => {
  throw new Error("broken");
};

it.each([
  ["the leader's address cannot be told", { leaderElsewhere: fails }],
  ["the caller cannot be identified", { identify: async () => fails() }],
  ["the caller cannot be identified while nobody leads", { identify: async () => fails(), leaderElsewhere: leaderAfter(150) }],
  ["the caller cannot be judged", { identify: identified, judge: fails }],
])("a stream ends with a line in the log if %s", async (_, broken) => {
  const clock = createFakeClock();
  const lines: { readonly msg: string; readonly err?: { readonly message: string } }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const errors: object[] = [];
  const stream = Object.assign(new EventEmitter(), { getPeer: () => "127.0.0.1:9", metadata: {} });
  stream.on("error", (error) => errors.push(error));
  serveProxyStream(stream as unknown as ServerStream, {
    registry: createProxyRegistry({ log }),
    judge: () => ({ kind: "serve" }),
    leadership: { epoch: 1 },
    registrations: { allow: () => true },
    tables: createRegistrationTables({ clock, tables: createSharedTables() }),
    turns: atOnce,
    cut: () => undefined,
    clock,
    log,
    ...broken,
  });
  await clock.advance(1_000);
  expect(errors).toEqual([{ code: 13, details: "opening the stream failed" }]);
  expect(lines.map(({ msg, err }) => [msg, err?.message])).toEqual([["opening a proxy's stream failed", "broken"]]);
});

it("a stream ends with a line in the log if a message of it cannot be handled, and others go on", () => {
  const lines: { readonly msg: string; readonly pod?: string }[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const registry = { ...createProxyRegistry({ log }), reported: fails };
  const { stream, errors } = openStream({ registry, log });
  stream.emit("data", { registration: REGISTRATION });
  stream.emit("data", { promise: { epoch: 1, tables: [] } });
  expect(registry.facts("ops/d0")?.connected).toBe(true);
  stream.emit("data", { report: {} });
  expect(errors).toEqual([{ code: 13, details: "the stream failed" }]);
  expect(lines.filter(({ msg }) => msg === "a proxy's stream failed")).toMatchObject([{ pod: "ops/d0" }]);
  expect(registry.facts("ops/d0")?.connected ?? false).toBe(false);
});

async function identified() {
  return { kind: "pod", pod: { namespace: "ops", name: "d0", uid: "1" } } as const;
}

function leaderAfter(ms: number): () => string | undefined {
  let calls = 0;
  return () => (calls++ * 100 < ms ? "" : undefined);
}

/** A stream of a proxy that the manager serves, and the errors that it gets. */
function openStream(parts: Pick<Parameters<typeof serveProxyStream>[1], "registry" | "log">) {
  const clock = createFakeClock();
  const errors: object[] = [];
  const stream = Object.assign(new EventEmitter(), {
    getPeer: () => "127.0.0.1:9",
    write: () => undefined,
    sendMetadata: () => undefined,
  });
  stream.on("error", (error) => errors.push(error));
  serveProxyStream(stream as unknown as ServerStream, {
    judge: () => ({ kind: "serve" }),
    leadership: { epoch: 1 },
    registrations: { allow: () => true },
    tables: createRegistrationTables({ clock, tables: createSharedTables() }),
    turns: atOnce,
    cut: () => undefined,
    clock,
    ...parts,
  });
  return { stream, errors };
}
