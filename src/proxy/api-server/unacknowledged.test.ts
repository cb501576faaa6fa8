import { describe, expect, it } from "vitest";
import { PeerWatch, parseRetransmits, readRetransmits } from "./connections.ts";

// As the kernel prints it: idle, keepalive timer, repeating (ports 50000 and 443, 3rd time), sent just now,
// zero window.
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

const PORTS = { localPort: 1, remotePort: 443 };
const at = (bytesRead: number, bytesWritten: number) => ({ ...PORTS, bytesRead, bytesWritten });
const table = (retransmits?: number) => new Map(retransmits === undefined ? [] : [["1-443", retransmits]]);

describe("a connection", () => {
  const watched = () => new PeerWatch(30_000);

  it("is lost when it has repeated for too long", () => {
    const peer = watched();
    expect(peer.isLost(at(0, 1), table(1), 0)).toBe(false);
    expect(peer.isLost(at(0, 1), table(4), 29_999)).toBe(false);
    expect(peer.isLost(at(0, 1), table(4), 30_000)).toBe(true);
  });

  it("starts anew once bytes were acknowledged", () => {
    const peer = watched();
    peer.isLost(at(0, 1), table(4), 0);
    expect(peer.isLost(at(0, 1), table(1), 20_000)).toBe(false);
    expect(peer.isLost(at(0, 1), table(2), 40_000)).toBe(false);
    peer.isLost(at(0, 1), table(), 45_000);
    expect(peer.isLost(at(0, 1), table(2), 60_000)).toBe(false);
  });
});

describe("the table is needed", () => {
  const watched = (first = at(10, 10)) => {
    const peer = new PeerWatch(30_000);
    peer.isLost(first, undefined, 0);
    return peer;
  };

  it("not while answers come", () => {
    const peer = watched(at(0, 0));
    for (let step = 1; step < 5; step++) {
      expect(peer.needsTable(at(step * 10, step * 10))).toBe(false);
      peer.isLost(at(step * 10, step * 10), undefined, step);
    }
  });

  it("not for an idle connection, once a check has shown that all was acknowledged", () => {
    const peer = watched();
    expect(peer.needsTable(at(10, 10))).toBe(true);
    peer.isLost(at(10, 10), table(), 1);
    expect(peer.needsTable(at(10, 10))).toBe(false);
    expect(peer.needsTable(at(10, 20))).toBe(true);
  });

  it("for bytes that were sent right after an answer, since the peer may have vanished then", () => {
    const peer = watched();
    expect(peer.needsTable(at(20, 30))).toBe(false);
    peer.isLost(at(20, 30), undefined, 1);
    expect(peer.needsTable(at(20, 30))).toBe(true);
  });

  it("once more for bytes that were sent just before a check, which had no time to be repeated", () => {
    const peer = watched();
    peer.isLost(at(10, 20), table(), 1);
    expect(peer.needsTable(at(10, 20))).toBe(true);
    peer.isLost(at(10, 20), table(), 2);
    expect(peer.needsTable(at(10, 20))).toBe(false);
  });

  it("while the connection repeats, whatever it has read", () => {
    const peer = watched();
    peer.isLost(at(10, 20), table(3), 1);
    expect(peer.needsTable(at(20, 20))).toBe(true);
  });
});
