// What the sidecar of a pod enforces, read from its debug pages over one port.
import { z } from "zod";
import type { ObjectRef } from "../../kube/client/resource.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure } from "../frame/command.ts";
import { withSidecar } from "./ask-sidecar.ts";

const OWNER = z.object({
  subset: z.string().optional(),
  resources: z.array(z.string()).optional(),
  moreResources: z.number().optional(),
});
const PLACE = z.object({
  namespace: z.string().optional(),
  bucket: z.number().optional(),
  clusterScope: z.literal(true).optional(),
  cluster: z.string().optional(),
  owners: z.number(),
  fenced: z.boolean().default(false),
  frozen: z.boolean().default(false),
});
const ROUTES = z.object({
  subset: z.string().optional(),
  version: z.number().optional(),
  owners: z.array(z.array(OWNER)).default([]),
  places: z.array(PLACE).default([]),
  next: z.string().optional(),
});
const RULES = z.object({
  rules: z.object({ first: z.array(z.looseObject({ kind: z.string(), object: z.string() })), truncated: z.boolean() }),
});

/** A page has a thousand places: of home, and of at most 32 other clusters with up to 20,000 namespaces. */
const MAX_PAGES = 1_000;

export type HeldPlace = Omit<z.output<typeof PLACE>, "owners"> & { readonly owners: readonly z.output<typeof OWNER>[] };

export interface Held {
  readonly subset: string | undefined;
  /** Undefined: it has no routes yet. */
  readonly version: number | undefined;
  readonly places: readonly HeldPlace[];
  /** Of the policies: KIND NAMESPACE/NAME. */
  readonly policies: ReadonlySet<string>;
  /** It enforces more policies than it names. */
  readonly hasMorePolicies: boolean;
}

export function readHeld(cluster: Cluster, pod: ObjectRef): Promise<Held> {
  return withSidecar(cluster, pod, async (ask) => {
    const places: HeldPlace[] = [];
    let query = "";
    for (let pages = 0; pages < MAX_PAGES; pages++) {
      const { subset, version, owners, places: some, next } = await ask({ path: `/debug/owners${query}`, schema: ROUTES });
      places.push(...some.map((place) => ({ ...place, owners: owners[place.owners] ?? [] })));
      if (next === undefined) {
        const { rules } = await ask({ path: "/debug/policies", schema: RULES });
        const policies = new Set(rules.first.map(({ kind, object }) => `${kind} ${object}`));
        return { subset, version, places, policies, hasMorePolicies: rules.truncated };
      }
      query = `?${new URLSearchParams({ after: next })}`;
    }
    throw failure(`the sidecar of pod ${pod.name} gives a list of places that does not end`);
  });
}
