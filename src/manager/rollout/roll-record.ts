// The record of a rollout: the revision that each pod of the StatefulSet has or is to get. The annotation
// roll-expected of the root stores it, so the manager needs no right to change a StatefulSet. Pure.
// Invariant: a pod's entry becomes the new revision before its eviction, and no older one during the rollout.
import { z } from "zod";
import { parseJson } from "../../base/json.ts";
import { compareNames } from "../sharding/shards.ts";

export interface RollRecord {
  readonly updateRevision: string;
  readonly podRevision: Readonly<Record<string, string>>;
}

const schema = z.object({ updateRevision: z.string().min(1), podRevision: z.record(z.string(), z.string().min(1)) });

/** A text that cannot be read counts as none. Never throws. */
export function parseRecord(text: string | undefined): RollRecord | undefined {
  if (text === undefined) return undefined;
  try {
    return schema.safeParse(parseJson(text)).data;
  } catch {
    return undefined;
  }
}

export function formatRecord({ updateRevision, podRevision }: RollRecord): string {
  const entries = Object.entries(podRevision).sort(([a], [b]) => compareNames(a, b));
  return JSON.stringify({ updateRevision, podRevision: Object.fromEntries(entries) });
}

/** @param wanted the names of the pods that the StatefulSet asks for */
export function recordOf(
  previous: RollRecord | undefined,
  updateRevision: string,
  wanted: readonly string[],
  pods: readonly { readonly name: string; readonly revision: string | undefined }[],
): RollRecord {
  const isSame = previous?.updateRevision === updateRevision;
  const revisions = new Map(pods.map(({ name, revision }) => [name, revision]));
  const entries = wanted.flatMap((name): [string, string][] => {
    const before = previous?.podRevision[name];
    const current = revisions.get(name);
    const revision = isSame && before === updateRevision ? before : (current ?? before);
    return revision === undefined ? [] : [[name, revision]];
  });
  return { updateRevision, podRevision: Object.fromEntries(entries) };
}

/** The revision of a new pod. A pod without an entry gets that of the last pod, which is reached last. */
export function expectedRevision({ podRevision }: RollRecord, pod: string): string | undefined {
  const last = Object.keys(podRevision).sort(compareNames).at(-1);
  return podRevision[pod] ?? (last === undefined ? undefined : podRevision[last]);
}
