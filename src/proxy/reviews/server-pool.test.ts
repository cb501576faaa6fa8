import { describe, expect, it } from "vitest";
import { fewAtOnce } from "./server-pool.ts";

/** Work that ends when the test says so. */
function world(max: number) {
  const begun: PromiseWithResolvers<number>[] = [];
  const run = fewAtOnce(max, () => {
    const work = Promise.withResolvers<number>();
    begun.push(work);
    return work.promise;
  });
  return { begun, run };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe("fewAtOnce", () => {
  it("never runs more than max at once, and every call gets its turn in order", async () => {
    const { begun, run } = world(2);
    const ended: number[] = [];
    for (let call = 0; call < 10; call++) void run().then((result) => ended.push(result));
    for (let done = 0; done < 10; done++) {
      await settle();
      expect(begun.length).toBe(Math.min(10, done + 2));
      begun[done]?.resolve(done);
    }
    await settle();
    expect(ended).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it("fails all calls that wait when the work fails, and goes on with the next call", async () => {
    const { begun, run } = world(1);
    const calls = [run(), run(), run()].map((call) => call.catch((error: Error) => error.message));
    await settle();
    begun[0]?.reject(new Error("gone"));
    expect(await Promise.all(calls)).toEqual(["gone", "gone", "gone"]);
    expect(begun.length).toBe(1);
    const next = run();
    await settle();
    begun[1]?.resolve(7);
    expect(await next).toBe(7);
  });

  it("keeps the places of work that runs on after a failure", async () => {
    const { begun, run } = world(2);
    const calls = [run(), run(), run()].map((call) => call.catch((error: Error) => error.message));
    begun[0]?.reject(new Error("gone"));
    await settle();
    const later = [run(), run()];
    await settle();
    expect(begun.length).toBe(3); // one of the later calls beside the second
    begun[1]?.resolve(1);
    await settle();
    begun[2]?.resolve(2);
    begun[3]?.resolve(3);
    expect(await Promise.all([...calls, ...later])).toEqual(["gone", 1, "gone", 2, 3]);
  });
});
