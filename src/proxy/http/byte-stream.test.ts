import { describe, expect, it } from "vitest";
import { type ByteSink, type ByteSource, readableOf, readBody } from "./byte-stream.ts";

describe("readBody", () => {
  it("reads a missing body (null), bytes, and a source", async () => {
    expect((await readBody(null, 10)).length).toBe(0);
    expect(Buffer.from(await readBody(Buffer.from("ab"), 10)).toString()).toBe("ab");
    const source = {
      open(sink: ByteSink) {
        queueMicrotask(() => {
          sink.write(Buffer.from("a"));
          sink.write(Buffer.from("b"));
          sink.end();
        });
        return { resume: () => undefined, cancel: () => undefined };
      },
      cancel: () => undefined,
    };
    expect(Buffer.from(await readBody(source, 10)).toString()).toBe("ab");
  });

  it("cancels a source that is too large, once", async () => {
    let cancelled = 0;
    const source = {
      open(sink: ByteSink) {
        queueMicrotask(() => {
          sink.write(Buffer.alloc(8));
          sink.write(Buffer.alloc(8));
        });
        return { resume: () => undefined, cancel: () => void cancelled++ };
      },
      cancel: () => undefined,
    };
    await expect(readBody(source, 10)).rejects.toThrow("more than 10 bytes");
    expect(cancelled).toBe(1);
    await expect(readBody(Buffer.alloc(11), 10)).rejects.toThrow("more than 10 bytes");
  });

  it("fails as the source does", async () => {
    const source = {
      open(sink: ByteSink) {
        queueMicrotask(() => sink.abort(new Error("broken")));
        return { resume: () => undefined, cancel: () => undefined };
      },
      cancel: () => undefined,
    };
    await expect(readBody(source, 10)).rejects.toThrow("broken");
  });
});

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
  it("does not open the source before the first read", () => {
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
