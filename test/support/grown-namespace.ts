// A namespace from which pods go on showing what they lose. From a younger one nobody is restarted (docs/rollout.md): pods see it go at
// once, which on a quick machine a test that does not wait would take for a fault.
import { NAMESPACES } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { eventually } from "./eventually.ts";

/** The manager's bound, and a margin for clocks that count in seconds. */
const GROWN_MS = 11_000;

/** Resolves when the namespace is old enough. */
export async function untilGrown(client: Pick<KubeClient, "get">, name: string): Promise<void> {
  const { metadata } = await client.get(NAMESPACES, { name });
  const bornMs = Date.parse(metadata.creationTimestamp ?? "");
  await eventually(() => Date.now() - bornMs > GROWN_MS, GROWN_MS * 2);
}
