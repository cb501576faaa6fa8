import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createConnections, DEFAULT_LIVENESS } from "./connections.ts";

function setup() {
  const clock = createFakeClock();
  const lost: string[] = [];
  const table = new Map<string, number>();
  let looks = 0;
  let broken = false;
  const connections = createConnections({
    clock,
    liveness: DEFAULT_LIVENESS,
    onLost: (pool, by) => lost.push(`${pool} ${by}`),
    retransmits: async () => {
      looks++;
      if (broken) throw new Error("no table");
      return table;
    },
  });
  const socket = (localPort: number) => {
    const destroyed: Error[] = [];
    const fake = Object.assign(new EventEmitter(), {
      localPort,
      remotePort: 443,
      bytesRead: 100,
      bytesWritten: 100,
      destroyed,
      destroy(error: Error) {
        destroyed.push(error);
        fake.emit("close");
      },
    });
    return fake;
  };
  const add = (pool: "lock" | "list", localPort: number) => {
    const one = socket(localPort);
    connections.add(pool, one as unknown as Socket);
    return one;
  };
  return { clock, lost, table, connections, add, looks: () => looks, breaks: (now: boolean) => (broken = now) };
}

it("counts by pool, until a connection closes", () => {
  const { connections, add } = setup();
  const [one] = [add("lock", 1), add("list", 2), add("list", 3)];
  expect([connections.openIn("lock"), connections.openIn("list"), connections.openIn("watch")]).toEqual([1, 2, 0]);
  one.emit("close");
  expect(connections.openIn("lock")).toBe(0);
});

it("breaks a connection that acknowledges nothing, and only that", async () => {
  const { clock, lost, table, connections, add } = setup();
  const [dead, alive] = [add("list", 1), add("list", 2)];
  table.set("1-443", 5);
  await clock.advance(40_000);
  expect(lost).toEqual(["list unacknowledged"]);
  expect([dead.destroyed.length, alive.destroyed.length, connections.openIn("list")]).toEqual([1, 0, 1]);
});

it("reports a connection that keepalive ended", () => {
  const { lost, add } = setup();
  add("lock", 1).emit("error", Object.assign(new Error("read ETIMEDOUT"), { code: "ETIMEDOUT" }));
  add("lock", 2).emit("error", Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" }));
  expect(lost).toEqual(["lock keepalive"]);
});

it("reads the table only while something may be unacknowledged, and no more once stopped", async () => {
  const { clock, connections, add, looks } = setup();
  await clock.advance(60_000);
  expect(looks()).toBe(0);
  const one = add("lock", 1);
  await clock.advance(60_000); // idle: one look has shown that all is acknowledged
  expect(looks()).toBe(1);
  for (let step = 0; step < 20; step++) {
    one.bytesWritten += 10;
    one.bytesRead += 10;
    await clock.advance(5_000);
  }
  expect(looks()).toBe(1); // answered within each interval
  one.bytesWritten += 10;
  await clock.advance(60_000);
  expect(looks()).toBe(3); // sent after an answer, and not answered: until it is known to be acknowledged
  one.emit("close");
  await clock.advance(60_000);
  add("lock", 2);
  connections.stop();
  await clock.advance(60_000);
  expect([looks(), clock.pending]).toEqual([3, 0]);
});

it("goes on looking after the table could not be read", async () => {
  const { clock, table, lost, add, breaks } = setup();
  breaks(true);
  add("lock", 1);
  table.set("1-443", 5);
  await clock.advance(20_000);
  breaks(false);
  await clock.advance(45_000);
  expect(lost).toEqual(["lock unacknowledged"]);
});
