import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../test/support/fake-clock.ts";
import type { RawRequest } from "../../kube/client/types.ts";
import { StatusError } from "../../kube/status.ts";
import { createTokenReviewer, type TokenReviewer } from "./token-reviewer.ts";

const GOOD = {
  authenticated: true,
  audiences: ["ctrlmesh"],
  user: {
    username: "system:serviceaccount:shop:operator",
    extra: { "authentication.kubernetes.io/pod-name": ["p"], "authentication.kubernetes.io/pod-uid": ["uid-1"] },
  },
};
const claims = (say: object) => `a.${Buffer.from(JSON.stringify(say)).toString("base64url")}`;
/** A token with these claims and no valid signature. */
const TOKEN = `${claims({ aud: ["ctrlmesh"], exp: 1e12 })}.c`;
const ADDRESS = "10.0.0.1";
let clock: FakeClock;
let asked: RawRequest[];
let answer: (request: RawRequest) => unknown;
let reviewer: TokenReviewer;
beforeEach(() => {
  clock = createFakeClock();
  asked = [];
  answer = () => ({ status: GOOD });
  const request = async (made: RawRequest) => {
    asked.push(made);
    return answer(made);
  };
  reviewer = createTokenReviewer({ client: { request }, clock, goodMs: 10_000 });
});

describe("a token", () => {
  it("of a pod names the pod", async () => {
    expect(await reviewer.review(TOKEN, ADDRESS)).toEqual({ kind: "pod", pod: { namespace: "shop", name: "p", uid: "uid-1" } });
    expect(asked[0]).toMatchObject({ method: "POST", body: { spec: { token: TOKEN, audiences: ["ctrlmesh"] } } });
  });
  it.each([
    [
      "is refused if the API server does not know it",
      { authenticated: false, error: "token has expired" },
      "bad-token",
      /expired/,
    ],
    ["is refused if it is for another audience", { ...GOOD, audiences: ["vault"] }, "bad-token", /audience ctrlmesh/],
    ["is refused if the API server knows no audiences", { ...GOOD, audiences: undefined }, "bad-token", /audience ctrlmesh/],
    ["is refused if it is a person's", { ...GOOD, user: { ...GOOD.user, username: "admin" } }, "not-bound", /not bound/],
    ["is refused if it is bound to no pod", { ...GOOD, user: { username: GOOD.user.username } }, "not-bound", /not bound/],
    ["is refused if nothing is said of it", undefined, "bad-token", /not valid/],
  ])("%s", async (_what, status, reason, message) => {
    answer = () => ({ status });
    expect(await reviewer.review(TOKEN, ADDRESS)).toMatchObject({
      kind: "refuse",
      reason,
      message: expect.stringMatching(message),
    });
  });
  it("that is malformed is refused without a review", async () => {
    for (const text of ["", "abc", "a.b", `${"a".repeat(20_000)}.b.c`, `${TOKEN}\n`]) {
      expect(await reviewer.review(text, ADDRESS)).toMatchObject({ kind: "refuse", reason: "bad-token" });
    }
    expect(asked).toEqual([]);
  });
  it("that has expired or is for another audience by its own claims is refused without a review", async () => {
    const now = clock.now() / 1_000;
    for (const say of [
      { aud: ["vault"], exp: now + 600 },
      { aud: "ctrlmesh", exp: now - 301 },
      { aud: ["ctrlmesh"] },
      { exp: now },
      [],
      3,
    ]) {
      expect(await reviewer.review(`${claims(say as object)}.c`, ADDRESS)).toMatchObject({ kind: "refuse", reason: "bad-token" });
    }
    expect(await reviewer.review("a.b.c", ADDRESS)).toMatchObject({ kind: "refuse", reason: "bad-token" });
    expect(asked).toEqual([]);
    await reviewer.review(`${claims({ aud: "ctrlmesh", exp: now - 299 })}.c`, ADDRESS); // clocks differ
    expect(asked).toHaveLength(1);
  });
  it("is remembered for ten seconds, a bad one for two, and a failed review not at all", async () => {
    await Promise.all([reviewer.review(TOKEN, ADDRESS), reviewer.review(TOKEN, ADDRESS)]);
    await clock.advance(9_000);
    await reviewer.review(TOKEN, ADDRESS);
    expect(asked).toHaveLength(1);
    await clock.advance(1_000);
    answer = () => ({ status: { authenticated: false } });
    await reviewer.review(TOKEN, ADDRESS);
    await reviewer.review(TOKEN, ADDRESS);
    expect(asked).toHaveLength(2);
    await clock.advance(2_000);
    answer = () => {
      throw new StatusError("ServiceUnavailable", "not now");
    };
    expect(await reviewer.review(TOKEN, ADDRESS)).toEqual({ kind: "wait", message: "the token cannot be verified now: not now" });
    await reviewer.review(TOKEN, ADDRESS);
    expect(asked).toHaveLength(4);
  });
  it("is reviewed with fifteen others at a time, and four thousand wait", async () => {
    const waiting: (() => void)[] = [];
    answer = () => new Promise((resolve) => waiting.push(() => resolve({ status: GOOD })));
    const verdicts = Array.from({ length: 5_000 }, (_, index) => reviewer.review(`${TOKEN}${index}`, ADDRESS));
    await clock.flush();
    expect(asked).toHaveLength(16);
    let kinds: string[] = [];
    void Promise.all(verdicts).then((all) => {
      kinds = all.map(({ kind }) => kind);
    });
    while (kinds.length === 0) {
      for (const finish of waiting.splice(0)) finish();
      await clock.flush();
    }
    expect(asked).toHaveLength(16 + 4_096);
    expect(kinds.filter((kind) => kind === "wait")).toHaveLength(5_000 - 16 - 4_096);
  });
  it("of another address is reviewed soon although one address has filled the queue", async () => {
    const waiting: (() => void)[] = [];
    answer = () => new Promise((resolve) => waiting.push(() => resolve({ status: GOOD })));
    for (let index = 0; index < 5_000; index++) void reviewer.review(`${TOKEN}${index}`, ADDRESS);
    const verdict = reviewer.review(TOKEN, "10.0.0.2");
    for (let round = 0; round < 2; round++) {
      await clock.flush();
      for (const finish of waiting.splice(0)) finish();
    }
    expect((await verdict).kind).toBe("pod");
    expect(asked.length).toBeLessThanOrEqual(3 * 16);
  });
});
