// The file with the last good policies and the open breakers, so that a restarted proxy limits what the
// process before has limited. Invariant: what is read is whole and was written for this pod, or it is
// nothing. Saves run one after the other; those that wait are one, of the newest state.
import { z } from "zod";
import { isErrno, readBounded, removeFile, replaceFile } from "../../base/durable-file.ts";
import type { Logger } from "../../base/log.ts";
import type { StoredBreaker } from "../../policy/engine/engine.ts";
import type { PodRef } from "../../wire/messages.ts";
import { POLICY, type PolicyResource, readPolicies } from "../../wire/policy-type.ts";

export interface StoredPolicies {
  readonly resource: PolicyResource;
  readonly breakers: readonly StoredBreaker[];
}

export interface PolicyFile {
  load(): Promise<StoredPolicies | undefined>;
  /**
   * Several saves that wait become one, of the newest state. Resolves when it is stored. If it cannot be
   * stored, the old file is removed, because rules that no longer hold must not come back.
   */
  save(read: () => StoredPolicies): Promise<void>;
  /** Resolves when nothing is being stored. */
  idle(): Promise<void>;
}

const MAX_BYTES = 32 * 1024 * 1024;
const FORMAT = 1;

const opened = { sinceMs: z.number(), cause: z.enum(["rate", "failures"]), recovery: z.string() };
const CONTENT = z.object({
  format: z.literal(FORMAT),
  pod: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
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
type Content = z.input<typeof CONTENT>;

export function createPolicyFile({
  path,
  pod,
  log,
}: {
  readonly path: string;
  readonly pod: PodRef;
  readonly log: Logger;
}): PolicyFile {
  let last: Promise<void> = Promise.resolve();
  /** A save that has not read its state yet. */
  let waiting: Promise<void> | undefined;
  const write = async ({ resource, breakers }: StoredPolicies) => {
    const { version, digest } = resource;
    const body = Buffer.from(POLICY.encode(resource)).toString("utf8");
    const open = breakers.flatMap(({ key, state }) => (state.kind === "closed" ? [] : [{ key, state }]));
    const content: Content = { format: FORMAT, pod, version, digest, body, breakers: open };
    try {
      await replaceFile(path, JSON.stringify(content));
    } catch (error) {
      log.warn({ err: error, path }, "policies not stored: a restart needs the manager");
      await removeFile(path).catch((err: unknown) => log.warn({ err, path }, "stored policies cannot be removed"));
    }
  };
  return {
    async load() {
      try {
        const { pod: owner, version, digest, body, breakers } = CONTENT.parse(JSON.parse(await readBounded(path, MAX_BYTES)));
        // A pod of a StatefulSet comes back under its name with another uid.
        if (owner.namespace !== pod.namespace || owner.name !== pod.name || owner.uid !== pod.uid) return undefined;
        return { resource: readPolicies(Buffer.from(body), { version, digest }).resource, breakers };
      } catch (error) {
        if (!isErrno(error, "ENOENT")) log.warn({ err: error, path }, "stored policies ignored");
        return undefined;
      }
    },
    save(read) {
      if (waiting !== undefined) return waiting;
      waiting = last.then(() => {
        waiting = undefined;
        return write(read());
      });
      last = waiting;
      return last;
    },
    idle: () => last,
  };
}
