import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { handshake } from "../../../test/support/tls-handshake.ts";
import { issueServerCertificate, type KeyCertificate } from "../../base/certificates.ts";
import { splitPem } from "../../base/pem.ts";
import type { CaState } from "./ca-rotation.ts";
import { advanceCa, authorityOf, createCaState } from "./ca-rotation.ts";

const DAY = 86_400_000;
const settleMs = 600_000;
const start = Date.now();
const step = (state: CaState, now: number) => advanceCa(state, { now, settleMs });
const must = (found: ReturnType<typeof step>) => {
  if (found === undefined) throw new Error("nothing is due");
  return found.state;
};
const rotate = (state: CaState, now: number) => must(step(must(step({ ...state, rotationWanted: true }, now)), now + settleMs));
const leafOf = (state: CaState): KeyCertificate => {
  const { signer, chainPem } = authorityOf(state, settleMs);
  const leaf = issueServerCertificate(signer, { dnsNames: ["localhost"], now: start, days: 1 });
  return { ...leaf, certPem: leaf.certPem + chainPem };
};

describe("the rotation of the CA", () => {
  const first = createCaState(start);
  it("begins when a third of its life is left, and not before", () => {
    expect(step(first, start + 2_400 * DAY)).toBeUndefined();
    const begun = step(first, start + 2_440 * DAY);
    expect(begun?.step).toBe("a new CA is trusted");
    expect(begun?.state.signing).toEqual(first.signing);
  });
  it("begins when a user asks, once", () => {
    const begun = step({ ...first, rotationWanted: true }, start);
    expect(begun).toMatchObject({ step: "a new CA is trusted", state: { rotationWanted: false } });
    expect(step({ ...must(begun), rotationWanted: true }, start + 1)).toMatchObject({
      step: "nothing to rotate",
      state: { rotationWanted: false },
    });
  });
  it("lets the new CA be trusted everywhere before it signs", () => {
    const begun = must(step({ ...first, rotationWanted: true }, start));
    expect(splitPem(authorityOf(begun, settleMs).trustPem)).toEqual([first.signing.certPem, begun.next?.certPem]);
    expect(authorityOf(begun, settleMs)).toMatchObject({
      signer: first.signing,
      chainPem: "",
      nextPem: begun.next?.certPem,
      nextSignsAtMs: Math.floor(start / 1_000) * 1_000 + settleMs,
    });
    expect(step(begun, start + settleMs - 2_000)).toBeUndefined();
    const done = must(step(begun, start + settleMs));
    expect(done.signing.certPem).toBe(begun.next?.certPem);
    expect(authorityOf(done, settleMs).trustPem).toBe(done.signing.certPem + first.signing.certPem);
  });
  it("forgets the old CA's key at once and trusts the CA for two weeks more", () => {
    const done = rotate(first, start);
    expect(JSON.stringify(done)).not.toContain(JSON.stringify(first.signing.keyPem).slice(1, -1));
    expect(step(done, start + 13 * DAY)).toBeUndefined();
    const forgotten = must(step(done, start + settleMs + 14 * DAY));
    expect(authorityOf(forgotten, settleMs).trustPem).toBe(forgotten.signing.certPem);
    expect(forgotten.cross).toHaveLength(1);
    expect(step(forgotten, start + 15 * DAY)).toBeUndefined();
  });
  it("does not wait if the signing CA has expired", () => {
    const begun = must(step(first, start + 3_649 * DAY));
    expect(step(begun, start + 3_650 * DAY)?.step).toBe("the new CA signs");
  });
  it("counts the two weeks from now if the Secret does not have the start, or a clock was wrong", () => {
    const done = rotate(first, start);
    for (const promotedAtMs of [undefined, start + 900 * DAY]) {
      const { promotedAtMs: _, ...rest } = done;
      const noticed = must(step({ ...rest, ...(promotedAtMs === undefined ? {} : { promotedAtMs }) }, start + DAY));
      expect([noticed.old.length, noticed.promotedAtMs]).toEqual([1, start + DAY]);
    }
  });
  it("drops expired certificates from the chain", () => {
    const done = rotate(first, start);
    expect(step(must(step(done, start + 15 * DAY)), start + 2_000 * DAY)).toBeUndefined();
    expect(must(step({ ...done, old: [] }, start + 3_650 * DAY)).next).toBeDefined(); // its own rotation comes first
  });
  it("keeps a chain to each CA that a process may have loaded, after any number of rotations", async () => {
    const states = [first];
    for (let times = 1; times <= 12; times++) states.push(rotate(states.at(-1) ?? first, start - 3_000_000 + times * 1_000));
    const served = leafOf(states.at(-1) ?? first);
    for (const { signing } of states) expect(await handshake(served, signing.certPem, "localhost")).toBe("ok");
  });
  it("keeps older leaves valid for processes that have loaded all trusted CAs", async () => {
    const before = leafOf(first);
    const done = rotate(first, start);
    expect(await handshake(before, authorityOf(done, settleMs).trustPem, "localhost")).toBe("ok");
    expect(await handshake(leafOf(done), authorityOf(done, settleMs).trustPem, "localhost")).toBe("ok");
    expect(new X509Certificate(done.signing.certPem).subject).not.toBe(new X509Certificate(first.signing.certPem).subject);
  });
});
