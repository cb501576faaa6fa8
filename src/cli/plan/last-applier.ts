// Who last applied an object, and how: what an apply removes depends on it. Pure.
import { z } from "zod";
import type { KubeObject } from "../../kube/types.ts";

const LAST_APPLIED = "f:kubectl.kubernetes.io/last-applied-configuration";
const WRITERS = z.array(
  z.object({
    manager: z.string(),
    operation: z.string(),
    time: z.string().optional(),
    subresource: z.string().optional(),
    fieldsV1: z.unknown(),
  }),
);

/** The field manager of the last server-side apply; undefined if the last apply was client-side, or if none is known. */
export function serverSideApplierOf({ metadata }: KubeObject): string | undefined {
  const { data: writers = [] } = WRITERS.safeParse((metadata as { readonly managedFields?: unknown }).managedFields);
  const applies = writers.filter(({ operation, subresource, fieldsV1 }) => {
    return subresource === undefined && (operation === "Apply" || JSON.stringify(fieldsV1)?.includes(LAST_APPLIED));
  });
  // The times are RFC 3339 in UTC, so their texts have their order. Of two in one second, the server-side one counts.
  const rank = ({ time = "", operation }: (typeof applies)[number]) => `${time} ${operation === "Apply" ? 1 : 0}`;
  const [last] = applies.sort((a, b) => rank(b).localeCompare(rank(a)));
  return last?.operation === "Apply" ? last.manager : undefined;
}
