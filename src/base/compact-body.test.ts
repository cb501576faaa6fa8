import { Socket } from "node:net";
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { expect, it } from "vitest";
import { CompactRequest, keepCompact } from "./compact-body.ts";

const arrivals = () => new CompactRequest(new Socket());
const settle = () => new Promise((resolve) => setImmediate(resolve));

it("keeps a body of single bytes that nobody reads in one buffer, and stops the socket", async () => {
  const request = arrivals();
  const accepted = Array.from({ length: 500 }, (_, at) => request.push(Buffer.from([at & 255])));
  await settle();
  expect(accepted.some(Boolean)).toBe(false);
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.push(null);
  await settle();
  expect(chunks.map(({ length }) => length)).toEqual([1, 499]);
  expect(Buffer.concat(chunks).every((byte, at) => byte === (at & 255))).toBe(true);
});

it("gives each chunk to a reader that is there at once, without stopping the socket", async () => {
  const request = arrivals();
  const chunks: string[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk.toString()));
  await settle();
  expect([request.push(Buffer.from("a")), request.push(Buffer.from("b"))]).toEqual([true, true]);
  expect(chunks).toEqual(["a", "b"]);
});

it("gives all bytes in their order, whenever the reader pauses", async () => {
  const steps = fc.array(fc.oneof(fc.uint8Array({ minLength: 1, maxLength: 4 }), fc.constantFrom("pause", "resume", "wait")));
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const request = arrivals();
      const [sent, got]: [Uint8Array[], Uint8Array[]] = [[], []];
      request.on("data", (chunk: Buffer) => got.push(chunk));
      const ended = new Promise((resolve) => request.once("end", resolve));
      for (const step of sequence) {
        if (step === "pause") request.pause();
        else if (step === "resume") request.resume();
        else if (typeof step === "string") await settle();
        else {
          sent.push(step);
          request.push(Buffer.from(step));
        }
      }
      request.push(null);
      request.resume();
      await ended;
      expect(Buffer.concat(got)).toEqual(Buffer.concat(sent));
    }),
    { numRuns: 200 },
  );
});

it("cuts a client that sends many tiny chunks, and none that sends a few a second or large ones", () => {
  let [cuts, nowMs] = [0, 0];
  const body = new PassThrough();
  keepCompact(
    body,
    () => cuts++,
    () => nowMs,
  );
  for (let chunk = 0; chunk < 10_000; chunk++) body.push(Buffer.alloc(256));
  for (let chunk = 0; chunk < 10_000; chunk++) {
    nowMs += 2;
    body.push(Buffer.from("x"));
  }
  expect(cuts).toBe(0);
  for (let chunk = 0; chunk < 600; chunk++) body.push(Buffer.from("x"));
  expect(cuts).toBeGreaterThan(0);
});
