// Sends random and half-sent messages to every port until a number or a time is reached, and then asks
// whether all is as before: no process has ended, memory has not grown, and honest calls work.
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { TLSSocket } from "node:tls";
import { eventually } from "../../support/eventually.ts";
import { memoryOf } from "../../support/process-memory.ts";
import { seededRandom } from "../../support/random.ts";
import { dial } from "../dial.ts";
import { managerClients } from "../honest/manager-clients.ts";
import { sidecarClients } from "../honest/sidecar-clients.ts";
import { callMesh } from "../mesh-call.ts";
import type { World } from "../world.ts";
import { MESSAGES, pick, type Random } from "./messages.ts";
import { type FuzzedPort, portsOf } from "./ports.ts";

export interface FuzzOptions {
  readonly seed: number;
  /** The fuzz ends when either is reached. */
  readonly messages: number;
  readonly seconds: number;
  readonly onLine?: (line: string) => void;
}

export interface FuzzReport {
  readonly messages: number;
  readonly problems: readonly string[];
  /** The resident set after a third of the fuzz and at its end, in MB, by program. */
  readonly rssMb: Readonly<Record<string, readonly [number, number]>>;
}

/** Conversations at a time. */
const WORKERS = 48;
/** How often a caller pauses between two messages, so that a listener sees half of a message for a moment. */
const PAUSES = 0.05;
/** A step is not growth: an allocator keeps what a burst has taken. */
const GROWTH = { factor: 1.2, mb: 30 };
const RECOVERY_MS = 30_000;

export async function fuzzPorts(
  world: World,
  { seed, messages, seconds, onLine = () => undefined }: FuzzOptions,
): Promise<FuzzReport> {
  const ports = portsOf(world);
  const programs = [world.manager, world.measured];
  const honest = [...managerClients(world), ...sidecarClients(world)];
  const endMs = performance.now() + seconds * 1000;
  const over = new AbortController();
  let sent = 0;
  const isOver = () => sent >= messages || performance.now() >= endMs || over.signal.aborted;
  const worker = async (index: number) => {
    const random = seededRandom(seed * 1_000 + index);
    while (!isOver()) {
      const count = await converse(world, pick(random, ports), random, over.signal);
      sent += count;
    }
  };
  const startedMs = performance.now();
  const all = Promise.all(Array.from({ length: WORKERS }, (_, index) => worker(index)));
  while (!isOver() && sent < messages / 3 && performance.now() - startedMs < (seconds * 1000) / 3) await sleep(200);
  const rssNow = () => programs.map(({ supervised }) => (supervised.isUp ? memoryOf(supervised.child.pid).rssMb : 0));
  const early = rssNow();
  onLine(`${sent} messages: ${programs.map(({ name }, at) => `${name} ${early[at]} MB`).join(", ")}`);
  await all;
  over.abort();
  const problems: string[] = [];
  for (const { name, call } of honest) {
    const works = eventually(() => call(0, AbortSignal.timeout(5_000)), RECOVERY_MS);
    await works.catch((error: Error) => problems.push(`${name} does not work after the fuzz: ${error.message}`));
  }
  const late = rssNow();
  programs.forEach(({ name, deaths, supervised }, at) => {
    if (deaths.length > 0) problems.push(`${name} has ended ${deaths.length} times: ${deaths[0]}`);
    if (/unhandled|uncaught/i.test(supervised.child.output())) problems.push(`${name} has an error that nobody handled`);
    const [before = 0, after = 0] = [early[at], late[at]];
    if (after > before * GROWTH.factor + GROWTH.mb) problems.push(`${name} has grown from ${before} to ${after} MB`);
  });
  for (const { close } of honest) await close?.();
  const rssMb = Object.fromEntries(programs.map(({ name }, at) => [name, [early[at] ?? 0, late[at] ?? 0] as const]));
  return { messages: sent, problems, rssMb };
}

/** One connection. @returns how many messages were sent */
async function converse(world: World, port: FuzzedPort, random: Random, signal: AbortSignal): Promise<number> {
  const from = pick(random, ["127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14"]);
  if (port.endpoint === world.manager.mesh && random() < 0.3) return converseInGrpc(world, random, { from, signal });
  const isSecure = port.secure.length > 0 && random() < 0.5;
  const socket = await dial({ from, signal }, port.endpoint, { secure: isSecure, alpn: port.alpn });
  if (socket === undefined) return 1;
  socket.resume();
  const kinds = isSecure ? port.secure : port.plain;
  const count = 1 + Math.floor(random() * 20);
  for (let index = 0; index < count && !socket.destroyed; index++) {
    socket.write(MESSAGES[pick(random, kinds)](random));
    if (random() < PAUSES) await sleep(random() * 5);
  }
  leave(socket, random);
  return count;
}

/** Of a pod that has proved who it is, or of one that has not. */
async function converseInGrpc(world: World, random: Random, caller: { from: string; signal: AbortSignal }): Promise<number> {
  const token = random() < 0.8 ? pick(random, world.tenants).token : "a.b.c";
  const call = await callMesh(caller, world.manager.mesh, { token });
  if (call === undefined) return 1;
  const count = 1 + Math.floor(random() * 10);
  for (let index = 0; index < count; index++) {
    call.sendBytes(MESSAGES[random() < 0.8 ? "grpc" : "bytes"](random));
    if (random() < PAUSES) await sleep(random() * 5);
  }
  await call.over(random() * 50);
  return count;
}

function leave(socket: Socket, random: Random): void {
  const how = random();
  if (how < 0.4) socket.destroy();
  else if (how < 0.6 && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
  else {
    socket.end();
    setTimeout(() => socket.destroy(), 200).unref();
  }
}
