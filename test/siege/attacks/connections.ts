// Attacks on a listener that is open to every pod, before anything that it understands: connections that say nothing, or say it slowly, or say
// too much. They are the same for each port, so each port's attacks are made from this list.
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack, Endpoint, Side, Targets } from "../attack.ts";
import { dial, talk, visit } from "../dial.ts";
import { head, post } from "../requests.ts";

export interface Port {
  /** Of the port, for the names of its attacks. */
  readonly name: string;
  readonly on: Side;
  readonly secure: boolean;
  /** A path that the listener serves. */
  readonly path: string;
  readonly endpoint: (targets: Targets) => Endpoint;
  /** Connections at a time in each of these attacks. */
  readonly connections: number;
}

/** Longer than any bound that a listener may have. */
const HOLD_MS = 60_000;

export function connectionAttacks({ name, on, secure, path, endpoint, connections }: Port): Attack[] {
  const attack = (what: string, perSecond: number, maxOpen: number, run: Attack["visit"]): Attack => ({
    name: `${name}-${what}`,
    on,
    perSecond,
    maxOpen,
    visit: run,
  });
  const talkOn = (port: Parameters<typeof visit>[2]) => (site: Parameters<Attack["visit"]>[0]) =>
    visit(site, endpoint(site.targets), { secure, ...port });
  const rate = connections / 20;
  return [
    attack("no-tls-byte", connections / 5, connections, talkOn({ secure: false, holdMs: HOLD_MS })),
    ...(secure ? [attack("silent-after-tls", rate / 2, connections, talkOn({ holdMs: HOLD_MS }))] : []),
    attack("slow-head", rate / 2, connections / 2, talkOn({ parts: slowly(head(path, 10)), everyMs: 700, holdMs: HOLD_MS })),
    attack("slow-body", rate / 2, connections / 2, (site) =>
      visit(site, endpoint(site.targets), {
        secure,
        everyMs: 900,
        holdMs: HOLD_MS,
        parts: [head(path, 6 * 1024 * 1024), ...slowly("[".repeat(60))],
      }),
    ),
    attack("wrong-length", 5, 50, async (site) => {
      const socket = await dial(site, endpoint(site.targets), { secure });
      if (socket === undefined) return "refused";
      const outcome = talk(socket, { parts: [head(path, site.number % 2 === 0 ? 100_000 : 3), "[[[[[[[[[["], holdMs: 5_000 });
      await sleep(200);
      socket.end();
      return outcome;
    }),
    attack("big-headers", 5, 100, talkOn({ parts: [unfinishedHead(path, 120)], holdMs: HOLD_MS })),
    attack(
      "pipeline",
      5,
      50,
      talkOn({ parts: [`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`.repeat(5_000)], holdMs: 5_000 }),
    ),
    attack("pipelines-at-once", rate, connections / 4, async (site) => {
      const socket = await dial(site, endpoint(site.targets), { secure });
      if (socket === undefined) return "refused";
      await sleep(AT_ONCE_MS - (Date.now() % AT_ONCE_MS), undefined, { signal: site.signal }).catch(() => undefined);
      return talk(socket, { parts: [READ_AT_ONCE], holdMs: 5_000 });
    }),
    attack("byte-body", rate / 2, connections / 4, talkOn({ parts: [byteBody(path)], holdMs: HOLD_MS })),
    attack("many-requests", 40, 100, talkOn({ parts: [post(path, "{}")], holdMs: 5_000 })),
  ];
}

/** All connections of these attacks send in the same moment. */
const AT_ONCE_MS = 5_000;
/** As many requests as Node reads from a socket at once. */
const READ_AT_ONCE = "GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2_400);

/** A body of which each byte is a chunk. */
function byteBody(path: string): string {
  return `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${"1\r\n[\r\n".repeat(60_000)}`;
}

/** A head of so many KiB that never ends. */
export function unfinishedHead(path: string, kib: number): string {
  return `${head(path, 10).slice(0, -2)}${Array.from({ length: kib }, (_, index) => `x-${index}: ${"a".repeat(1010)}\r\n`).join("")}`;
}

/** One byte at a time. */
function slowly(text: string): string[] {
  return [...text];
}
