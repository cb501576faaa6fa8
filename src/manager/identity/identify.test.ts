import { Metadata } from "@grpc/grpc-js";
import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createClientPace } from "../../base/client-pace.ts";
import { createIdentify, REFUSED_TOKENS } from "./identify.ts";
import type { TokenVerdict } from "./token-reviewer.ts";

const GOOD: TokenVerdict = { kind: "pod", pod: { namespace: "shop", name: "p", uid: "uid-1" } };
const BAD: TokenVerdict = { kind: "refuse", reason: "bad-token", message: "no" };
const metadata = (token: string) => {
  const made = new Metadata();
  made.set("authorization", `Bearer ${token}`);
  return made;
};

function callers() {
  const clock = createFakeClock();
  const asked: string[] = [];
  const review = async (token: string) => {
    asked.push(token);
    return token === "good" ? GOOD : BAD;
  };
  const rejections = { reject: () => undefined };
  const identify = createIdentify({ reviewer: { review }, rejections, limit: createClientPace({ ...REFUSED_TOKENS, clock }) });
  const kinds = async (token: string, peer: string, times: number) => {
    const all = await Promise.all(Array.from({ length: times }, () => identify(metadata(token), peer)));
    return Object.fromEntries(
      Map.groupBy(all, ({ kind }) => kind)
        .entries()
        .map(([kind, some]) => [kind, some.length]),
    );
  };
  return { clock, asked, kinds };
}

it("an address with many refused tokens waits, from any port, and another address does not", async () => {
  const { clock, asked, kinds } = callers();
  expect(await kinds("made-up", "10.0.0.1:1", 4_000)).toEqual({ refuse: 1_024, wait: 2_976 });
  expect(await kinds("made-up", "10.0.0.1:2", 10)).toEqual({ wait: 10 });
  expect(asked).toHaveLength(1_024);
  expect(await kinds("good", "10.0.0.2:1", 10)).toEqual({ pod: 10 });
  await clock.advance(1_000);
  expect(await kinds("made-up", "10.0.0.1:3", 100)).toEqual({ refuse: 10, wait: 90 });
});

it("a call with 16 KiB of metadata is refused before its token is reviewed, and one with a large token is not", async () => {
  const { asked, kinds } = callers();
  expect(await kinds("x".repeat(16 * 1024), "10.0.0.1:1", 1)).toEqual({ refuse: 1 });
  expect(asked).toEqual([]);
  await kinds("x".repeat(8 * 1024), "10.0.0.1:1", 1);
  expect(asked).toHaveLength(1);
});

it("good tokens use nothing up", async () => {
  const { kinds } = callers();
  for (let round = 0; round < 5; round++) expect(await kinds("good", "10.0.0.1:1", 1_000)).toEqual({ pod: 1_000 });
});
