import { describe, expect, it } from "vitest";
import type { ByteSink } from "./byte-stream.ts";
import { readBody } from "./read-body.ts";

describe("readBody", () => {
  it("reads nothing, bytes, and a source", async () => {
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
