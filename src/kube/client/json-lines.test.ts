import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJsonLines } from "./watch.ts";

async function* cut(bytes: Buffer, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let start = 0;
  for (const size of sizes) {
    yield bytes.subarray(start, start + size);
    start += size;
  }
  yield bytes.subarray(start);
}

async function collect(chunks: AsyncIterable<Uint8Array>, maxLineBytes?: number): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const batch of parseJsonLines(chunks, maxLineBytes)) values.push(...batch);
  return values;
}

test("the chunk boundaries do not change the values", async () => {
  const cuts = fc.array(fc.nat({ max: 9 }), { maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.jsonValue()), cuts, async (values, sizes) => {
      const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
      expect(await collect(cut(bytes, sizes))).toEqual(values.map((value) => JSON.parse(JSON.stringify(value))));
    }),
    { interruptAfterTimeLimit: 2_000 },
  );
});

test("blank lines and carriage returns are not values", async () => {
  expect(await collect(cut(Buffer.from('{"a":1}\r\n\n \n2\n'), []))).toEqual([{ a: 1 }, 2]);
});

test("a stream that ends inside a line yields the lines before and then throws", async () => {
  const values: unknown[] = [];
  const read = async () => {
    for await (const batch of parseJsonLines(cut(Buffer.from('1\n{"a":'), []))) values.push(...batch);
  };
  await expect(read()).rejects.toMatchObject({ code: "WATCH_TRUNCATED" });
  expect(values).toEqual([1]);
});

test("a line that is not JSON and an endless line are errors", async () => {
  await expect(collect(cut(Buffer.from("<html>\n"), []))).rejects.toMatchObject({ code: "WATCH_MALFORMED" });
  await expect(collect(cut(Buffer.from("x".repeat(100)), [10, 10]), 15)).rejects.toMatchObject({ code: "WATCH_MALFORMED" });
});
