// The last good policies in the state folder. Invariant: what is read is whole and was written by this pod, or
// it is nothing, and then the proxy waits for the manager.
import { z } from "zod";
import type { Logger } from "../../base/log.ts";
import type { PodRef } from "../../mesh/contract/messages.ts";
import { POLICY, type PolicyResource, readPolicies } from "../../mesh/contract/policy-type.ts";
import { isSamePod, OWNER, type StateFolder } from "../state/state-folder.ts";

export type StoredPolicies =
  | { readonly kind: "policies"; readonly resource: PolicyResource }
  /** The manager has said that it sends no policies. */
  | { readonly kind: "none" };

export type PolicyFile = ReturnType<typeof createPolicyFile>;

const FORMAT = 1;

const HEAD = { format: z.literal(FORMAT), pod: OWNER };
const POLICIES = z.object({ ...HEAD, version: z.number(), digest: z.string(), body: z.string() });
const NONE = z.object({ ...HEAD, none: z.literal(true) });
const CONTENT = z.union([NONE, POLICIES]);

export function createPolicyFile({ policies: slot }: Pick<StateFolder, "policies">, pod: PodRef, log: Logger) {
  const save = async (read: () => z.input<typeof CONTENT>) => {
    // Rules that no longer hold must not come back.
    await slot.save(() => ({ text: () => JSON.stringify(read()), onFullDisk: "remove" }));
  };
  return {
    async load(): Promise<StoredPolicies | undefined> {
      try {
        const text = await slot.read();
        if (text === undefined) return undefined;
        const content = CONTENT.parse(JSON.parse(text));
        if (!isSamePod(content.pod, pod)) return undefined;
        if ("none" in content) return { kind: "none" };
        const { version, digest, body } = content;
        const { resource } = readPolicies(Buffer.from(body), { version, digest });
        return { kind: "policies", resource };
      } catch (error) {
        log.warn({ err: error, path: slot.path }, "stored policies ignored");
        return undefined;
      }
    },
    /** Resolves when the newest policies are stored, or the old ones are removed. */
    save: (read: () => PolicyResource): Promise<void> =>
      save(() => {
        const resource = read();
        const body = Buffer.from(POLICY.encode(resource)).toString("utf8");
        return { format: FORMAT, pod, version: resource.version, digest: resource.digest, body };
      }),
    /** Stores that the manager sends none. */
    saveNone: (): Promise<void> => save(() => ({ format: FORMAT, pod, none: true })),
    async idle(): Promise<void> {
      await slot.idle();
    },
  };
}
