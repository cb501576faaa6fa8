import type { LookupAddress } from "node:dns";
import { expect, it } from "vitest";
import { createLookups } from "./lookups.ts";

function setup(maxAtOnce: number) {
  const asked: string[] = [];
  const answers = new Map<string, PromiseWithResolvers<LookupAddress[]>>();
  const resolve = createLookups((host) => {
    asked.push(host);
    const answer = Promise.withResolvers<LookupAddress[]>();
    answers.set(host, answer);
    return answer.promise;
  }, maxAtOnce);
  const ask = (host: string, signal = new AbortController().signal) => resolve(host, signal);
  const answer = async (host: string) => {
    answers.get(host)?.resolve([{ address: host, family: 4 }]);
    await new Promise((done) => setImmediate(done));
  };
  return { asked, answers, ask, answer };
}

it("a burst of requests to one server costs one look-up, and a later one asks anew (D24)", async () => {
  const { asked, ask, answer } = setup(2);
  const all = Array.from({ length: 100 }, () => ask("a"));
  await answer("a");
  for (const found of await Promise.all(all)) expect(found).toEqual([{ address: "a", family: 4 }]);
  void ask("a");
  expect(asked).toEqual(["a", "a"]);
});

it("slow names take no more than their part of the threads, and each gets its turn (D24)", async () => {
  const { asked, answers, ask, answer } = setup(2);
  const all = ["a", "b", "c", "d"].map((host) => ask(host).catch(() => []));
  expect(asked).toEqual(["a", "b"]);
  answers.get("b")?.reject(new Error("no such name"));
  await answer("");
  expect(asked).toEqual(["a", "b", "c"]);
  for (const host of ["a", "c", "d"]) await answer(host);
  expect((await Promise.all(all)).map(({ length }) => length)).toEqual([1, 0, 1, 1]);
});

it("a name that nobody waits for any more is not looked up, and is if somebody asks again (D24)", async () => {
  const { asked, ask, answer } = setup(1);
  const left = new AbortController();
  void ask("a");
  for (const host of ["b", "b", "c"]) void ask(host, left.signal);
  const stays = ask("c");
  left.abort();
  await answer("a");
  expect(asked).toEqual(["a", "c"]);
  void ask("b");
  await answer("c");
  await stays;
  expect(asked).toEqual(["a", "c", "b"]);
});
