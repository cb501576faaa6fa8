import { expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createAskedIdentity } from "./reviews-tls.ts";

const OLD = { cert: "old", key: "k", ca: "ca" };
const NEW = { ...OLD, cert: "new" };

function world() {
  const clock = createFakeClock();
  let asked = 0;
  const identity = createAskedIdentity(() => asked++, clock);
  return { clock, identity, asked: () => asked };
}

it("a flood of handshakes asks the main thread once a second, and a rotated certificate is used then", async () => {
  const { clock, identity, asked } = world();
  const first = Array.from({ length: 100 }, () => identity.current());
  identity.answered(OLD);
  expect(await Promise.all(first)).toEqual(first.map(() => OLD));
  await clock.advance(999);
  expect(await identity.current()).toBe(OLD);
  expect(asked()).toBe(1);
  await clock.advance(1);
  const next = identity.current();
  identity.answered(NEW);
  expect(await next).toBe(NEW);
  expect(asked()).toBe(2);
});

it("without an identity each connection fails with the reason, and a later one may succeed", async () => {
  const { clock, identity } = world();
  const failed = identity.current();
  identity.answered({ problem: "no CA yet" });
  await expect(failed).rejects.toThrow("no CA yet");
  await clock.advance(1_000);
  const next = identity.current();
  identity.answered(NEW);
  expect(await next).toBe(NEW);
});
