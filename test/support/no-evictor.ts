// An evictor that evicts nothing, for tests in which no pod is restarted.
import type { Evictor } from "../../src/manager/restart/evictor.ts";

export const noEvictor: Evictor = {
  lastAttempt: () => undefined,
  refusalOf: () => undefined,
  evict: async () => undefined,
  forget: () => undefined,
};
