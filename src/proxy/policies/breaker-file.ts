// The breakers that are not closed, in the state folder: a small file of its own, since it is written with
// each change of a breaker. Invariant: what is read is whole and was written by this pod, or it is nothing.
import { z } from "zod";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../mesh/contract/messages.ts";
import { createPodFile, type StateFolder } from "../state/state-folder.ts";

export type BreakerFile = ReturnType<typeof createBreakerFile>;

const BREAKER = z.object({
  uid: z.string(),
  rule: z.string(),
  sinceMs: z.number(),
  cause: z.enum(["rate", "failures"]),
  figure: z.string(),
  recovery: z.string(),
});
const CONTENT = z.object({ breakers: z.array(BREAKER) });

export function createBreakerFile({ breakers: slot }: Pick<StateFolder, "breakers">, pod: PodRef, log: Logger) {
  // An old file may open a breaker again that has closed. That ends by itself or by the annotation.
  return createPodFile(slot, CONTENT, pod, { ignored: "stored breakers ignored", onFullDisk: "keep", log });
}
