import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import type { PartsMessage } from "./model/parts.ts";
import { createStreams, MAX_STREAMS } from "./streams.ts";

/** A page that reads as fast as a test wants. */
function createReader() {
  const emitter = new EventEmitter();
  const texts: string[] = [];
  const reader = {
    isSlow: false,
    isClosed: false,
    response: Object.assign(emitter, {
      write: (text: string) => {
        texts.push(text);
        return !reader.isSlow;
      },
      destroy: () => emitter.emit("close"),
    }) as unknown as ServerResponse,
    drain() {
      reader.isSlow = false;
      emitter.emit("drain");
    },
    /** What has come since the last call. */
    messages: (): PartsMessage[] =>
      texts.splice(0).flatMap((text) => (text.startsWith("event: parts\n") ? [JSON.parse(text.split("data: ")[1] ?? "")] : [])),
  };
  return reader;
}

const ABOUT = { access: [], version: "0", proof: "p" };

test("a page gets the whole first, and then only what has changed or gone", () => {
  const parts = new Map([
    ["a", "1"],
    ["b", "2"],
  ]);
  const streams = createStreams(parts, ABOUT, () => ({ nowMs: 0 }));
  const reader = createReader();
  streams.add(reader.response);
  expect(reader.messages()).toEqual([{ isWhole: true, about: ABOUT, set: { a: 1, b: 2 }, gone: [] }]);
  parts.set("a", "3").delete("b");
  streams.changed(["a", "b"]);
  expect(reader.messages()).toEqual([{ isWhole: false, set: { a: 3 }, gone: ["b"] }]);
  streams.changed([]);
  expect(reader.messages()).toEqual([]);
});

test("a page that does not read gets the newest state at once later, however much has changed meanwhile", () => {
  const parts = new Map<string, string>();
  const streams = createStreams(parts, ABOUT, () => ({ nowMs: 0 }));
  const [slow, fast] = [createReader(), createReader()];
  for (const { response } of [slow, fast]) streams.add(response);
  slow.isSlow = true;
  streams.tick(); // what makes it full
  slow.messages();
  for (let round = 0; round < 1_000; round++) {
    parts.set(`part ${round % 3}`, String(round));
    streams.changed([`part ${round % 3}`]);
    streams.tick();
  }
  expect(slow.messages()).toEqual([]);
  expect(fast.messages()).toHaveLength(1_001);
  slow.drain();
  expect(slow.messages()).toEqual([{ isWhole: false, set: { "part 0": 999, "part 1": 997, "part 2": 998 }, gone: [] }]);
});

test("one page too many is refused, until another one has gone", () => {
  const streams = createStreams(new Map(), ABOUT, () => ({ nowMs: 0 }));
  const readers = Array.from({ length: MAX_STREAMS }, createReader);
  for (const { response } of readers) expect(streams.add(response)).toBe(true);
  expect(streams.add(createReader().response)).toBe(false);
  readers[0]?.response.destroy();
  expect(streams.add(createReader().response)).toBe(true);
  streams.closeAll();
  expect(streams.size).toBe(0);
});
