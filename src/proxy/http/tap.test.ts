import { describe, expect, it } from "vitest";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { tap } from "./tap.ts";

function setup(brokenOff?: "break" | "end") {
  const source = scriptedSource();
  const sink = recordingSink();
  let done = 0;
  const tapped = tap(
    source,
    (write) => ({
      chunk(chunk) {
        if (chunk.length === 0) throw new Error("empty");
        for (const byte of chunk) write(Buffer.of(byte + 1));
      },
      end: () => write(Buffer.from(".")),
    }),
    { onDone: () => done++, ...(brokenOff === undefined ? {} : { brokenOff }) },
  );
  return { source, sink, tapped, done: () => done };
}

describe("a tapped body", () => {
  it("is what the passage writes, its end included", () => {
    const { source, sink, tapped, done } = setup();
    tapped.open(sink);
    source.write("ab");
    source.end();
    expect([sink.text, sink.state, done()]).toEqual(["bc.", "ended", 1]);
  });

  it("that breaks off is broken for the receiver, or ends where each part stands alone", () => {
    for (const [how, state] of [
      ["break", "aborted"],
      ["end", "ended"],
    ] as const) {
      const { source, sink, tapped, done } = setup(how);
      tapped.open(sink);
      source.write("a");
      source.abort();
      expect([sink.text, sink.state, done()]).toEqual(["b", state, 1]);
    }
  });

  it("whose passage throws is broken at both ends", () => {
    const { source, sink, tapped, done } = setup("end");
    tapped.open(sink);
    source.write("");
    expect([sink.state, source.cancelled, done()]).toEqual(["aborted", true, 1]);
  });

  it("is done once when the receiver goes, and when it is never opened", () => {
    const opened = setup();
    const control = opened.tapped.open(opened.sink);
    control.cancel(new Error("gone"));
    control.cancel(new Error("gone"));
    const unopened = setup();
    unopened.tapped.cancel(new Error("gone"));
    expect([opened.done(), unopened.done()]).toEqual([1, 1]);
  });
});
