import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { MAX_REVIEW_BYTES } from "../../kube/admission-review.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import { readBody } from "../http/byte-stream.ts";
import { pace } from "./pace.ts";
import type { ReviewCall } from "./review-call.ts";

const CHUNK = Buffer.alloc(64 * 1024);
const MIB = 1024 * 1024;

/** A body that comes as fast as it is read, and how much of it was read. */
function bodyOf(bytes: number, read: (bytes: number) => void): ByteSource {
  let left = bytes;
  return {
    cancel: () => undefined,
    open(sink) {
      let isOver = false;
      const flow = () => {
        while (!isOver && left > 0) {
          const chunk = CHUNK.subarray(0, Math.min(left, CHUNK.length));
          left -= chunk.length;
          read(chunk.length);
          if (!sink.write(chunk)) return;
        }
        if (!isOver && left === 0) {
          isOver = true;
          sink.end();
        }
      };
      queueMicrotask(flow);
      return {
        resume: flow,
        cancel() {
          isOver = true;
        },
      };
    },
  };
}

/** Callers that send bodies, which the next layer reads whole. */
function callers() {
  const clock = createFakeClock();
  const readBytes = new Map<string, number>();
  let served = 0;
  const handler = pace(clock)(async ({ body }) => {
    await readBody(body, Number.POSITIVE_INFINITY);
    served++;
    return { status: 200, headers: {}, body: null };
  });
  const call = (address: string, bytes: number, more: Partial<ReviewCall["record"]> = {}, headers: ReviewCall["headers"] = {}) =>
    handler({
      method: "POST",
      target: "/mutate",
      headers,
      body: bodyOf(bytes, (more) => readBytes.set(address, (readBytes.get(address) ?? 0) + more)),
      signal: new AbortController().signal,
      record: { peerNames: undefined, address, ...more },
    });
  return {
    clock,
    call,
    readBytes: (address: string) => readBytes.get(address) ?? 0,
    get served() {
      return served;
    },
  };
}

it("a stranger that sends the largest reviews over and over waits, and the API server and peers do not", async () => {
  const world = callers();
  const hostile = Array.from({ length: 6 }, () => world.call("10.0.0.9", MAX_REVIEW_BYTES));
  await world.clock.flush();
  expect(world.served).toBeLessThan(3);
  const before = world.served;
  for (let review = 0; review < 100; review++) await world.call("10.0.0.1", 10_000);
  await world.call("10.0.0.9", MAX_REVIEW_BYTES, { forwardedAs: "owner" });
  expect(world.served - before).toBe(101);
  for (let second = 0; second < 6; second++) await world.clock.advance(1_000);
  await Promise.all(hostile);
});

it("a body of a gigabyte is read at 8 MiB a second, whatever it is", async () => {
  const world = callers();
  void world.call("10.0.0.9", 1024 * MIB);
  await world.clock.flush();
  for (let step = 0; step < 1_000; step++) await world.clock.advance(10);
  expect(world.readBytes("10.0.0.9")).toBeGreaterThan(80 * MIB);
  expect(world.readBytes("10.0.0.9")).toBeLessThan(14 * MIB + 81 * MIB);
});

it("the bytes of many connections of one address count together, and each of them ends", async () => {
  const world = callers();
  const all = Array.from({ length: 50 }, () => world.call("10.0.0.9", MIB));
  await world.clock.flush();
  expect(world.readBytes("10.0.0.9")).toBeLessThan(14 * MIB + 51 * CHUNK.length);
  for (let step = 0; step < 100; step++) await world.clock.advance(100);
  await Promise.all(all);
});

it("a call costs its address what has come, and not what it announces", async () => {
  const world = callers();
  for (let call = 0; call < 50; call++) await world.call("10.0.0.9", 0, {}, { "content-length": String(2 ** 53) });
  await world.call("10.0.0.9", MAX_REVIEW_BYTES);
  expect(world.served).toBe(51);
});
