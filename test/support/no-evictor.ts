// An evictor that evicts nothing, for tests in which no pod is restarted.
import type { Evictor } from "../../src/manager/restart/evictor.ts";

export const noEvictor: Evictor = {
  attemptOn: () => undefined,
  evict: async () => undefined,
  forget: () => undefined,
};
