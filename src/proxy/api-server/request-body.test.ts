import { describe, expect, it } from "vitest";
import type { ByteSink, ByteSource } from "../http/byte-stream.ts";
import { readableOf } from "./request-body.ts";

function fakeSource() {
  const seen = { sink: undefined as ByteSink | undefined, resumed: 0, cancelled: 0 };
  const source: ByteSource = {
    open(sink) {
      seen.sink = sink;
      return { resume: () => void seen.resumed++, cancel: () => void seen.cancelled++ };
    },
    cancel: () => void seen.cancelled++,
  };
  return { seen, source };
}

describe("readableOf", () => {
  it("opens the source with the first read only", () => {
    const { seen, source } = fakeSource();
    const stream = readableOf(source);
    expect(seen.sink).toBeUndefined();
    stream.read(0);
    expect(seen.sink).toBeDefined();
  });

  it("pauses the source when the buffer is full, and resumes it when data was read", async () => {
    const { seen, source } = fakeSource();
    const stream = readableOf(source);
    stream.read(0);
    expect(seen.sink?.write(Buffer.alloc(1024 * 1024))).toBe(false);
    const before = seen.resumed;
    stream.read();
    expect(seen.resumed).toBeGreaterThan(before);
  });

  it("ends with the source, and does not cancel it then", async () => {
    const { seen, source } = fakeSource();
    const stream = readableOf(source);
    stream.read(0);
    seen.sink?.write(Buffer.from("ab"));
    seen.sink?.end();
    expect(Buffer.concat(await stream.toArray()).toString()).toBe("ab");
    expect(seen.cancelled).toBe(0);
  });

  it.each([true, false])("cancels the source when it is destroyed (opened: %s)", async (opened) => {
    const { seen, source } = fakeSource();
    const stream = readableOf(source);
    if (opened) stream.read(0);
    stream.destroy();
    expect(seen.cancelled).toBe(1);
  });

  it("fails with the source's error", async () => {
    const { seen, source } = fakeSource();
    const stream = readableOf(source);
    stream.read(0);
    seen.sink?.abort(new Error("client gone"));
    await expect(stream.toArray()).rejects.toThrow("client gone");
  });
});
