import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { PROOF_MS } from "../../mesh/ownership/clusters.ts";
import { createHomeProof } from "./home-proof.ts";

const bearer = (claims: unknown) => `Bearer head.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.signature`;
const OWN = bearer({ "kubernetes.io": { pod: { uid: "one" } } });
const OTHERS = [
  bearer({ "kubernetes.io": { pod: { uid: "two" } } }),
  bearer({ "kubernetes.io": { serviceaccount: { name: "foo" } } }),
  bearer({ sub: "somebody" }),
  "Bearer no-jwt",
  "Basic b3duOm93bg==",
  "",
];

function setUp() {
  const clock = createFakeClock();
  return { clock, home: createHomeProof("one", clock) };
}

it("an accepted request with the pod's own token is a proof, from the moment at which it was sent", async () => {
  const { clock, home } = setUp();
  expect([home.leftMs() > 0, home.authorization]).toEqual([false, undefined]);
  const sent = home.mark();
  await clock.advance(3_000);
  home.answered(OWN, sent);
  expect([home.leftMs(), home.authorization]).toEqual([PROOF_MS - 3_000, OWN]);
  await clock.advance(PROOF_MS - 3_000);
  expect(home.leftMs()).toBe(0);
});

it("no other token is a proof, and without the pod's uid none is", () => {
  const { clock, home } = setUp();
  for (const header of [...OTHERS, undefined]) home.answered(header, home.mark());
  expect([home.leftMs() > 0, home.authorization]).toEqual([false, undefined]);
  const unnamed = createHomeProof("", clock);
  unnamed.answered(bearer({ "kubernetes.io": { pod: { uid: "" } } }), unnamed.mark());
  expect(unnamed.leftMs() > 0).toBe(false);
});

it("an answer to an older request does not shorten a proof", async () => {
  const { clock, home } = setUp();
  const slow = home.mark();
  await clock.advance(2_000);
  home.answered(OWN, home.mark());
  home.answered(OWN, slow);
  expect(home.leftMs()).toBe(PROOF_MS);
});

it("a proof ends by either clock, as the monotonic one may stand still while the machine is suspended", () => {
  let [monotonicMs, nowMs] = [0, 1_000_000];
  const home = createHomeProof("one", { monotonicMs: () => monotonicMs, now: () => nowMs });
  home.answered(OWN, home.mark());
  nowMs += PROOF_MS;
  expect(home.leftMs()).toBe(0);
  nowMs -= PROOF_MS;
  monotonicMs += PROOF_MS;
  expect(home.leftMs()).toBe(0);
});
