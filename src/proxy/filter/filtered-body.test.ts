import { describe, expect, it } from "vitest";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { createListFilter } from "../../kube/codec/codec.ts";
import { listStream } from "./filtered-body.ts";

function setup() {
  const source = scriptedSource();
  const sink = recordingSink();
  const done: number[] = [];
  const filter = createListFilter("json", ({ namespace }) => namespace === "a");
  const control = listStream(source, filter, (bytes) => done.push(bytes)).open(sink);
  return { source, sink, done, control };
}

const foreign = '{"metadata":{"namespace":"b","name":"secret"}}';
const own = '{"metadata":{"namespace":"a","name":"own"}}';
const list = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[${own},${foreign},${own}]}`;

describe("a filtered list", () => {
  it("comes out the same at any chunking, and counts what was taken out", () => {
    const { source, sink, done } = setup();
    for (const byte of Buffer.from(list)) source.write(Buffer.of(byte));
    source.end();
    expect(JSON.parse(sink.text).items).toEqual([JSON.parse(own), JSON.parse(own)]);
    expect(sink.state).toBe("ended");
    expect(done).toEqual([foreign.length + 1]);
  });

  it("that breaks off is broken for the client too", () => {
    const { source, sink, done } = setup();
    source.write(list.slice(0, 80));
    source.abort();
    expect(sink.state).toBe("aborted");
    expect(done).toHaveLength(1);
  });

  it("that ends too early is broken for the client, never a short list", () => {
    const { source, sink } = setup();
    source.write(list.slice(0, -2));
    source.end();
    expect(sink.state).toBe("aborted");
  });

  it("that cannot be read is given up upstream", () => {
    const { source, sink } = setup();
    expect(source.write('{"items":[}')).toBe(false);
    expect(sink.state).toBe("aborted");
    expect(source.cancelled).toBe(true);
  });

  it("pauses with its reader", () => {
    const { source, sink, control } = setup();
    sink.full = true;
    expect(source.write(list)).toBe(false);
    control.resume();
    expect(source.resumed).toBe(1);
  });

  it("is given up with its reader", () => {
    const { source, control, done } = setup();
    control.cancel(new Error("gone"));
    expect(source.cancelled).toBe(true);
    expect(done).toEqual([0]);
    expect(source.write(list)).toBe(false);
  });
});
