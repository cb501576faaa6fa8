// The breakers that are not closed, in the state folder: a small file of its own, since it is written with
// each change of a breaker. Invariant: what is read is whole and was written by this pod, or it is nothing.
import { z } from "zod";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../mesh/contract/messages.ts";
import type { StoredBreaker } from "../../policy/engine/engine.ts";
import { OWNER, readStored, type StateFolder } from "../state/state-folder.ts";

export type BreakerFile = ReturnType<typeof createBreakerFile>;

const FORMAT = 1;
const BREAKER = z.object({
  uid: z.string(),
  rule: z.string(),
  sinceMs: z.number(),
  cause: z.enum(["rate", "failures"]),
  figure: z.string(),
  recovery: z.string(),
});
const CONTENT = z.object({ format: z.literal(FORMAT), pod: OWNER, breakers: z.array(BREAKER) });

export function createBreakerFile({ breakers: slot }: Pick<StateFolder, "breakers">, pod: PodRef, log: Logger) {
  return {
    /** Undefined without a usable file. */
    async load(): Promise<readonly StoredBreaker[] | undefined> {
      const stored = await readStored(slot, CONTENT, pod, { log, ignored: "stored breakers ignored" });
      return stored?.breakers;
    },
    async save(read: () => readonly StoredBreaker[]): Promise<void> {
      const text = () => {
        const content: z.input<typeof CONTENT> = { format: FORMAT, pod, breakers: [...read()] };
        return JSON.stringify(content);
      };
      // An old file may open a breaker again that has closed. That ends by itself or by the annotation.
      await slot.save(() => ({ text, onFullDisk: "keep" }));
    },
    async idle(): Promise<void> {
      await slot.idle();
    },
  };
}
