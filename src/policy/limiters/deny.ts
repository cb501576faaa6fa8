// A limiter that refuses every request: a list of forbidden requests, or a breaker that a person holds open.
import type { Limiter } from "./limiter.ts";

export const DENY: Limiter = {
  ask: () => ({ kind: "open", waitMs: Number.POSITIVE_INFINITY }),
  charge: () => undefined,
  state: () => "Opened",
};
