// What rules need of a namespace, from an answer that may be anything. Pure. Invariants: each object has a bounded size; a name that no
// namespace has is left out, since other places of a route table could have it.
import { z } from "zod";
import { MeshError } from "../../base/errors.ts";
import { apiVersionOf, type Resource } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const VERSION = /^[A-Za-z0-9.-]{1,64}$/;
const MAX_LABELS = 256;
/** A prefix of 253 characters, a slash and a name of 63. */
const MAX_KEY_LENGTH = 317;
const MAX_VALUE_LENGTH = 63;
const MAX_TOKEN_LENGTH = 4_096;

const TEXT = z.string().max(128).optional().catch(undefined);
const META = z.object({
  name: z.string().regex(NAME),
  uid: TEXT,
  resourceVersion: z.string().regex(VERSION).optional().catch(undefined),
  creationTimestamp: TEXT,
  labels: z.unknown().optional(),
});
const PAGE = z.object({
  metadata: z
    .object({
      resourceVersion: z.string().regex(VERSION).optional().catch(undefined),
      continue: z.string().max(MAX_TOKEN_LENGTH).optional(),
    })
    .default({}),
  items: z.array(z.unknown()),
});

/** @throws MeshError `KUBE_MALFORMED` */
export function pageOf(answer: unknown) {
  const page = PAGE.safeParse(answer).data;
  if (page === undefined) throw new MeshError("KUBE_MALFORMED", "listing namespaces: the answer is not a list");
  const { items, metadata } = page;
  return { items, resourceVersion: metadata.resourceVersion, next: metadata.continue ?? "" };
}

/** None if it is not a namespace. */
export function plainNamespace(object: unknown, resource: Resource): KubeObject[] {
  const metadata = META.safeParse((object as { readonly metadata?: unknown } | null)?.metadata).data;
  if (metadata === undefined) return [];
  const { labels, ...others } = metadata;
  return [
    {
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: { ...others, labels: plainLabels(labels) },
    } as KubeObject,
  ];
}

function plainLabels(labels: unknown): Readonly<Record<string, string>> {
  if (typeof labels !== "object" || labels === null) return {};
  const valid = Object.entries(labels).filter(
    ([key, value]) => key.length <= MAX_KEY_LENGTH && typeof value === "string" && value.length <= MAX_VALUE_LENGTH,
  );
  return Object.fromEntries(valid.slice(0, MAX_LABELS));
}

/** About the bytes of memory that it takes, rather more than fewer: measured for 0 to 256 labels. */
export function memoryOf({ metadata: { labels = {} } }: KubeObject): number {
  return Object.entries(labels).reduce((sum, [key, value]) => sum + 300 + key.length + value.length, 1_000);
}

/** Undefined if it is not a version. */
export function versionOf({ resourceVersion }: { readonly resourceVersion?: unknown }): string | undefined {
  return typeof resourceVersion === "string" && VERSION.test(resourceVersion) ? resourceVersion : undefined;
}
