import { expect, it } from "vitest";
import { createFairGate } from "./fair-gate.ts";

/** Starts tasks that end on demand, and records their order. */
function openGate(options: { readonly concurrency: number; readonly maxWaiting: number }) {
  const gate = createFairGate(options.concurrency, options.maxWaiting);
  const started: string[] = [];
  const refused: string[] = [];
  const ends: (() => void)[] = [];
  return {
    started,
    refused,
    run(client: string, name = client) {
      const task = () => {
        started.push(name);
        return new Promise<void>((resolve) => ends.push(resolve));
      };
      gate(client, task).catch((error) => refused.push(`${name}: ${error.code}`));
    },
    async endOne() {
      await settle();
      ends.shift()?.();
      await settle();
    },
  };
}
const settle = () => new Promise((resolve) => setImmediate(resolve));

it("as many tasks as allowed run at a time, and those of one client in their order", async () => {
  const { run, started, endOne } = openGate({ concurrency: 2, maxWaiting: 8 });
  for (const name of ["1", "2", "3", "4"]) run("a", name);
  expect(started).toEqual(["1", "2"]);
  await endOne();
  expect(started).toEqual(["1", "2", "3"]);
  for (let left = 0; left < 3; left++) await endOne();
  run("a", "5");
  run("a", "6");
  run("a", "7");
  expect(started).toEqual(["1", "2", "3", "4", "5", "6"]);
});

it("a client waits for one turn of each other client, however many tasks they have waiting", async () => {
  const { run, started, endOne } = openGate({ concurrency: 1, maxWaiting: 1_000 });
  for (let task = 0; task < 400; task++) run("flood");
  for (let task = 0; task < 400; task++) run("another");
  run("honest");
  for (let turn = 0; turn < 3; turn++) await endOne();
  expect(started).toEqual(["flood", "flood", "another", "honest"]);
});

it("a full queue has a place for a client with fewer waiting tasks, and the largest client loses its newest", async () => {
  const { run, started, refused, endOne } = openGate({ concurrency: 1, maxWaiting: 4 });
  for (const name of ["1", "2", "3", "4", "5", "6"]) run("flood", name);
  await settle();
  expect(refused).toEqual(["6: BUSY"]);
  run("honest");
  await settle();
  expect(refused).toEqual(["6: BUSY", "5: BUSY"]);
  for (let turn = 0; turn < 4; turn++) await endOne();
  expect(started).toEqual(["1", "2", "honest", "3", "4"]);
});

it("a full queue of clients with one task each refuses the next client", async () => {
  const { run, refused } = openGate({ concurrency: 1, maxWaiting: 3 });
  for (const client of ["running", "a", "b", "c", "d"]) run(client);
  await settle();
  expect(refused).toEqual(["d: BUSY"]);
});

it("a task that fails gives its place to the next one", async () => {
  const gate = createFairGate(1, 1);
  const failed = gate("a", () => Promise.reject(new Error("no")));
  const next = gate("a", async () => "done");
  await expect(failed).rejects.toThrow("no");
  expect(await next).toBe("done");
});
