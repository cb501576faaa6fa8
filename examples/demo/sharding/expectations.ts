// What the steps wait for: each function says why it is not so yet. Pure.
import type { Facts } from "./view.ts";

/** Why these are not all shards, each with its ready pod and reconciling what it owns; undefined if they are. */
export function wrongFamily({ root, shards }: Facts, expected: readonly string[]): string | undefined {
  const seen = shards.map(({ shard }) => shard);
  if (seen.join() !== expected.join()) return `the shards should be ${expected.join(", ")}, and are ${seen.join(", ") || "none"}`;
  const idle = shards.find(({ pods, leader, namespaces }) => pods !== "1/1" || leader === "" || namespaces === 0);
  if (idle !== undefined)
    return `shard ${idle.shard} should have a ready pod, a leader and namespaces, and has ${idle.pods} pods, leader "${idle.leader}" and ${idle.namespaces} namespaces`;
  const late = shards.find(({ namespaces, reconciled }) => reconciled !== namespaces);
  if (late !== undefined)
    return `shard ${late.shard} should have reconciled the Foos of its ${late.namespaces} namespaces, and has reconciled ${late.reconciled}`;
  if (root.ready === "True" && root.converged) return undefined;
  return `the ShardingConfig ${root.name} should be ready and converged, and is Ready ${root.ready}: ${root.message}`;
}

/** Why not every message is reconciled; undefined if all are. */
export function wrongFoos({ behind }: Facts): string | undefined {
  return behind === 0 ? undefined : `every Foo should be reconciled at its newest message, and ${behind} are not`;
}
