// A short run of bench/clusters/memory.ts: connections to good and broken clusters that begin and end leave the sidecar as it was.
import { expect, it } from "vitest";
import { runClusterChurn } from "../soak/cluster-churn.ts";

const ROUNDS = 4;

it("connections to good and broken clusters leave nothing behind: no memory, sockets, timers, watches or tunnels", async () => {
  const lines: string[] = [];
  const vitals = await runClusterChurn({
    rounds: ROUNDS,
    roundSeconds: 20,
    rate: 60,
    onRound: (now, visits) => lines.push(JSON.stringify({ visits, ...now })),
  });
  // The first round loads code and fills caches.
  const [first, last] = [vitals[0], vitals.at(-1)];
  if (first === undefined || last === undefined) throw new Error("nothing was measured");
  const text = lines.join("\n");
  expect(last.heapUsedMb, text).toBeLessThan(first.heapUsedMb + 3);
  expect(last.externalMb, text).toBeLessThan(first.externalMb + 6);
  expect(last.sockets, text).toBeLessThan(first.sockets + 12);
  expect(last.resources.Timeout ?? 0, text).toBeLessThan((first.resources.Timeout ?? 0) + 8);
  expect(last.rssMb, text).toBeLessThan(first.rssMb * 1.2 + 10);
}, 600_000);
