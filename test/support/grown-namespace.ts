// Waits until a namespace is old enough that pods retain it read-only. No pod is restarted for a younger namespace
// (docs/concepts/handover.md): pods see such a namespace as deleted at once, which a test on a fast machine would count as a failure.
import { NAMESPACES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { eventually } from "./eventually.ts";

/** The manager's limit, and a margin for clocks in seconds. */
const GROWN_MS = 11_000;

/** Resolves when the namespace is old enough. */
export async function untilGrown(client: Pick<KubeClient, "get">, name: string): Promise<void> {
  const { metadata } = await client.get(NAMESPACES, { name });
  const bornMs = Date.parse(metadata.creationTimestamp ?? "");
  await eventually(() => Date.now() - bornMs > GROWN_MS, GROWN_MS * 2);
}
