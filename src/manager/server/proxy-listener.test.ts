import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { createPodConnections, type PodSocket } from "./proxy-listener.ts";

/** Says that it is closed some time after it was destroyed, as sockets do. */
class FakeSocket extends EventEmitter {
  destroyed = false;
  destroy() {
    if (!this.destroyed) setImmediate(() => this.emit("close"));
    this.destroyed = true;
    return this;
  }
}

const sockets = (count: number) => Array.from({ length: count }, () => new FakeSocket());
const keepAll = (kept: ReturnType<typeof createPodConnections>, pod: string, all: readonly FakeSocket[]) => {
  for (const socket of all) kept.keep(pod, socket as unknown as PodSocket);
};

it("one token on a thousand connections that are proved in one moment keeps eight, the newest", () => {
  const kept = createPodConnections(8);
  const all = sockets(1_000);
  keepAll(kept, "uid-a", all);
  expect(all.filter(({ destroyed }) => !destroyed)).toEqual(all.slice(-8));
});

it("leaves other pods' connections alone, and has room again for those that end", async () => {
  const kept = createPodConnections(2);
  const [others, own] = [sockets(2), sockets(2)];
  keepAll(kept, "uid-a", others);
  keepAll(kept, "uid-b", own);
  own[0]?.destroy();
  await new Promise((resolve) => setImmediate(resolve));
  keepAll(kept, "uid-b", [...own, ...sockets(1)]);
  expect([...others, ...own].map(({ destroyed }) => destroyed)).toEqual([false, false, true, false]);
});
