import { expect, it } from "vitest";
import { DEFAULT_LIVENESS } from "../../../src/proxy/api-server/connections.ts";
import { noticedWithinMs } from "./noticed-within.ts";

it("a vanished peer is noticed within 45 seconds, by whichever means", () => {
  expect(noticedWithinMs(DEFAULT_LIVENESS)).toBeLessThanOrEqual(45_000);
  const only = {
    keepAliveIdleMs: 1,
    keepAliveIntervalMs: 2,
    keepAliveProbes: 3,
    pingEveryMs: 4,
    unackedMs: 5,
    unackedCheckMs: 6,
  };
  expect(noticedWithinMs(only)).toBe(23);
  expect(noticedWithinMs({ ...only, pingEveryMs: 100 })).toBe(200);
  expect(noticedWithinMs({ ...only, keepAliveIntervalMs: 100 })).toBe(301);
});
