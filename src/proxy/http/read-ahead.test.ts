import { describe, expect, it } from "vitest";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { readAhead } from "./body-sources.ts";

const settled = () => new Promise((resolve) => setImmediate(resolve));

async function longBody() {
  const source = scriptedSource();
  const reading = readAhead(source, 3);
  const isWanted = source.write("abcd");
  const body = await reading;
  return { source, body, isWanted, sink: recordingSink() };
}

describe("the beginning of a body", () => {
  it("is the whole body if it ends within the bound", async () => {
    const source = scriptedSource();
    const reading = readAhead(source, 3);
    expect(source.write("ab")).toBe(true);
    source.write("c");
    source.end();
    const sink = recordingSink();
    (await reading).open(sink);
    await settled();
    expect([sink.text, sink.state]).toEqual(["abc", "ended"]);
  });

  it("that breaks off within the bound is an error", async () => {
    const source = scriptedSource();
    const reading = readAhead(source, 3);
    source.write("ab");
    source.abort(new Error("gone"));
    await expect(reading).rejects.toThrow("gone");
  });

  it("over the bound stops the source until somebody reads, who gets every byte", async () => {
    const { source, body, isWanted, sink } = await longBody();
    expect([isWanted, source.resumed]).toEqual([false, 0]);
    body.open(sink);
    await settled();
    expect([sink.text, source.resumed]).toEqual(["abcd", 1]);
    source.write("ef");
    source.end();
    expect([sink.text, sink.state]).toEqual(["abcdef", "ended"]);
  });

  it("over the bound leaves the source stopped while its reader is full", async () => {
    const { source, body, sink } = await longBody();
    sink.full = true;
    const control = body.open(sink);
    await settled();
    expect(source.resumed).toBe(0);
    control.resume();
    expect(source.resumed).toBe(1);
  });

  it.each(["end", "abort"] as const)("over the bound passes an %s that came before its reader", async (how) => {
    const { source, body, sink } = await longBody();
    source[how]();
    body.open(sink);
    await settled();
    expect([sink.text, sink.state]).toEqual(["abcd", how === "end" ? "ended" : "aborted"]);
  });

  it("over the bound is given up with its source, opened or not", async () => {
    const unopened = await longBody();
    unopened.body.cancel(new Error("gone"));
    expect(unopened.source.cancelled).toBe(true);
    const opened = await longBody();
    opened.body.open(opened.sink).cancel(new Error("gone"));
    await settled();
    expect([opened.source.cancelled, opened.sink.text]).toEqual([true, ""]);
  });

  it("tells a reader nothing more once it has given up, even while it is being handed the beginning", async () => {
    const { source, body, sink } = await longBody();
    source.write("ef");
    source.end();
    const control = body.open({
      ...sink,
      write(chunk) {
        sink.write(chunk);
        control.cancel(new Error("enough"));
        return false;
      },
    });
    await settled();
    expect([sink.text, sink.state]).toEqual(["abcd", "open"]);
  });
});
