// The last good policies and the open breakers in the state folder. Invariant: what is read is whole and was
// written by this pod, or it is nothing.
import { z } from "zod";
import type { Logger } from "../../base/log.ts";
import type { StoredBreaker } from "../../policy/engine/engine.ts";
import type { PodRef } from "../../wire/messages.ts";
import { POLICY, type PolicyResource, readPolicies } from "../../wire/policy-type.ts";
import { isSamePod, OWNER, type StateFolder } from "../state/state-folder.ts";

export interface StoredPolicies {
  readonly resource: PolicyResource;
  readonly breakers: readonly StoredBreaker[];
}

export type PolicyFile = ReturnType<typeof createPolicyFile>;

const FORMAT = 1;

const opened = { sinceMs: z.number(), cause: z.enum(["rate", "failures"]), recovery: z.string() };
const CONTENT = z.object({
  format: z.literal(FORMAT),
  pod: OWNER,
  version: z.number(),
  digest: z.string(),
  body: z.string(),
  breakers: z.array(
    z.object({
      key: z.string(),
      state: z.discriminatedUnion("kind", [
        z.object({ kind: z.literal("open"), ...opened }),
        z.object({ kind: z.literal("probing"), ...opened }),
      ]),
    }),
  ),
});

export function createPolicyFile({ policies: slot }: Pick<StateFolder, "policies">, pod: PodRef, log: Logger) {
  return {
    async load(): Promise<StoredPolicies | undefined> {
      try {
        const text = await slot.read();
        if (text === undefined) return undefined;
        const { pod: owner, version, digest, body, breakers } = CONTENT.parse(JSON.parse(text));
        if (!isSamePod(owner, pod)) return undefined;
        return { resource: readPolicies(Buffer.from(body), { version, digest }).resource, breakers };
      } catch (error) {
        log.warn({ err: error, path: slot.path }, "stored policies ignored");
        return undefined;
      }
    },
    /** Resolves when the newest state is stored, or the old one is removed. */
    async save(read: () => StoredPolicies): Promise<void> {
      // Rules that no longer hold must not come back.
      await slot.save(() => ({ text: textOf(read(), pod), onFullDisk: "remove" }));
    },
    async idle(): Promise<void> {
      await slot.idle();
    },
  };
}

function textOf({ resource, breakers }: StoredPolicies, pod: PodRef): () => string {
  return () => {
    const { version, digest } = resource;
    const body = Buffer.from(POLICY.encode(resource)).toString("utf8");
    const open = breakers.flatMap(({ key, state }) => (state.kind === "closed" ? [] : [{ key, state }]));
    const content: z.input<typeof CONTENT> = { format: FORMAT, pod, version, digest, body, breakers: open };
    return JSON.stringify(content);
  };
}
