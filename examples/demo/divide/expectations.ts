// What the steps wait for: each function says why it is not so yet. Pure.
import type { Facts, NamespaceRow } from "./view.ts";

/** Why a VirtualApp is not ready and converged; undefined if it is. */
export function wrongApp({ app }: Facts): string | undefined {
  if (app.ready === "True" && app.converged) return undefined;
  return `the VirtualApp ${app.name} should be ready and converged, and is Ready ${app.ready}: ${app.message}`;
}

/** Why a namespace is not yet reconciled by one of these pods at least `count` times; undefined if it is. */
export function wrongReconciler(
  { namespaces }: Facts,
  namespace: string,
  pods: readonly string[],
  count = 1,
): string | undefined {
  const row: NamespaceRow | undefined = namespaces.find((one) => one.namespace === namespace);
  const by = row?.reconciledBy ?? [];
  if (row !== undefined && row.count >= count && by.length > 0 && by.every((pod) => pods.includes(pod))) return undefined;
  const seen = by.length === 0 ? "no pod" : by.join(", ");
  return `${namespace} should be reconciled by ${pods.join(" or ")}, and was by ${seen} (count ${row?.count ?? 0})`;
}
