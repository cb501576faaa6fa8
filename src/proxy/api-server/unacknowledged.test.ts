import { describe, expect, it } from "vitest";
import { Doubt, parseRetransmits, readRetransmits, UnacknowledgedWatch } from "./unacknowledged.ts";

// As the kernel prints it: idle, keepalive timer, repeating (ports 50000 and 443, 3rd time), sent just now, zero window.
const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:A599 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 619545 1 0000 100 0 0 10 0
   1: 0100007F:C350 0A000001:01BB 01 00000000:00000000 02:00000ABC 00000000     0        0 1 2 0000 20 4 30 10 -1
   2: 0100007F:C351 0A000001:01BB 01 00000020:00000000 01:00000012 00000003     0        0 2 2 0000 20 4 30 10 -1
   3: 0100007F:C352 0A000001:01BB 01 00000020:00000000 01:00000012 00000000     0        0 3 2 0000 20 4 30 10 -1
   4: 0100007F:C353 0A000001:01BB 01 00000020:00000000 04:00000012 00000007     0        0 4 2 0000 20 4 30 10 -1
`;

it("reads which connections repeat what they sent", () => {
  expect(parseRetransmits(TABLE)).toEqual(new Map([["50001-443", 3]]));
  expect(parseRetransmits("")).toEqual(new Map());
  expect(parseRetransmits(TABLE.trimEnd().split("\n").slice(0, 4).join("\n"))).toEqual(new Map([["50001-443", 3]]));
});

it("reads them over IPv6 as well", () => {
  const [local, remote] = [`${"0".repeat(24)}01000000:C350`, `${"F".repeat(32)}:01BB`];
  const line = `   7: ${local} ${remote} 01 00000020:00000000 01:00000012 00000002     0        0 2 2 0000 20 4 30 10 -1`;
  expect(parseRetransmits(`  sl  local_address remote_address\n${line}\n`)).toEqual(new Map([["50000-443", 2]]));
});

it("reads this machine's tables without an error", async () => {
  expect(await readRetransmits()).toBeInstanceOf(Map);
});

const [a, b] = [
  { localPort: 1, remotePort: 443 },
  { localPort: 2, remotePort: 443 },
];
const table = (entries: Record<string, number>) => new Map(Object.entries(entries));

it("names a connection that has repeated for too long", () => {
  const watch = new UnacknowledgedWatch(30_000);
  expect(watch.look([a, b], table({ "1-443": 1 }), 0)).toEqual([]);
  expect(watch.look([a, b], table({ "1-443": 4 }), 29_999)).toEqual([]);
  expect(watch.look([a, b], table({ "1-443": 4, "2-443": 1 }), 30_000)).toEqual([a]);
});

it("starts anew once something was acknowledged", () => {
  const watch = new UnacknowledgedWatch(30_000);
  watch.look([a], table({ "1-443": 4 }), 0);
  expect(watch.look([a], table({ "1-443": 1 }), 20_000)).toEqual([]);
  expect(watch.look([a], table({ "1-443": 2 }), 40_000)).toEqual([]);
  watch.look([a], table({}), 45_000);
  expect(watch.look([a], table({ "1-443": 2 }), 60_000)).toEqual([]);
});

describe("whether the table must be looked at", () => {
  const at = (bytesRead: number, bytesWritten: number) => ({ bytesRead, bytesWritten });

  it("not while answers come", () => {
    const doubt = new Doubt();
    for (let step = 0; step < 5; step++) {
      expect(doubt.isOpen(at(step * 10, step * 10))).toBe(false);
      doubt.looked(at(step * 10, step * 10), false);
    }
  });

  it("not for an idle connection, once a look has shown that all was acknowledged", () => {
    const doubt = new Doubt();
    doubt.looked(at(10, 10), false);
    expect(doubt.isOpen(at(10, 10))).toBe(true);
    doubt.looked(at(10, 10), true);
    expect(doubt.isOpen(at(10, 10))).toBe(false);
    expect(doubt.isOpen(at(10, 20))).toBe(true);
  });

  it("for what was sent right after an answer, in the time of one look: the peer may have gone then", () => {
    const doubt = new Doubt();
    doubt.looked(at(10, 10), false);
    expect(doubt.isOpen(at(20, 30))).toBe(false);
    doubt.looked(at(20, 30), false);
    expect(doubt.isOpen(at(20, 30))).toBe(true);
  });

  it("once more for what was sent just before a look: it had no time to be repeated", () => {
    const doubt = new Doubt();
    doubt.looked(at(10, 10), false);
    doubt.looked(at(10, 20), true);
    expect(doubt.isOpen(at(10, 20))).toBe(true);
    doubt.looked(at(10, 20), true);
    expect(doubt.isOpen(at(10, 20))).toBe(false);
  });
});
