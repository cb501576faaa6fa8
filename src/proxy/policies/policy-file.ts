// The last good policies in the state folder. Invariant: what is read is whole and was written by this pod, or
// it is nothing, and then the proxy waits for the manager.
import { z } from "zod";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../mesh/contract/messages.ts";
import { POLICY, type PolicyResource, readPolicies } from "../../mesh/contract/policy-type.ts";
import { createPodFile, type StateFolder } from "../state/state-folder.ts";

export type PolicyFile = ReturnType<typeof createPolicyFile>;

const POLICIES = z
  .object({ version: z.number(), digest: z.string(), body: z.string() })
  .transform(({ body, ...head }) => readPolicies(Buffer.from(body), head).resource);
const NONE = z.object({ none: z.literal(true) });
const CONTENT = z.union([NONE, POLICIES]);

export function createPolicyFile({ policies: slot }: Pick<StateFolder, "policies">, pod: PodRef, log: Logger) {
  // Rules that no longer hold must not come back.
  const file = createPodFile(slot, CONTENT, pod, { ignored: "stored policies ignored", onFullDisk: "remove", log });
  return {
    /** `none`: the manager has said that it sends no policies. */
    load: file.load,
    /** Resolves when the newest policies are stored, or the old ones are removed. */
    save: (read: () => PolicyResource) =>
      file.save(() => {
        const resource = read();
        const { version, digest } = resource;
        return { version, digest, body: Buffer.from(POLICY.encode(resource)).toString("utf8") };
      }),
    saveNone: () => file.save(() => ({ none: true })),
    idle: file.idle,
  };
}
