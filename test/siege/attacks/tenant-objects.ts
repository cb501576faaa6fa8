// Attacks by the objects that a tenant with `edit` may create in its own namespace. The API server is localkube, which calls no webhook: what the
// manager does with a spec that its webhook would refuse is part of the question.

import { SHARDING_CONFIGS, VIRTUAL_APPS } from "../../../src/api/resources.ts";
import { ROLLING } from "../../../src/api/sharding-keys.ts";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import type { Resource } from "../../../src/kube/client/resource.ts";
import { STATEFUL_SETS } from "../../../src/kube/client/resources.ts";
import type { Attack, Site } from "../attack.ts";
import { TENANT } from "../cluster-objects.ts";
import { deepExpressions, largeSelectors } from "../costly-app.ts";

/** M7: beyond this many the API server of this run would be what ends. */
const MAX_APPS = 60;

/** Writes the objects. @returns "written", or the reason of the API server */
async function write({ targets, signal }: Site, objects: readonly (readonly [Resource, object])[]): Promise<string> {
  const { server, caPem, token } = targets.kube;
  const client = createKubeClient({ server, caPem, token: () => token, userAgent: "siege" });
  try {
    for (const [resource, object] of objects) {
      const named = object as { readonly metadata: { readonly name: string } };
      const body = { apiVersion: `${resource.group}/${resource.version}`, kind: resource.kind, ...named };
      const how = { type: "apply", body, fieldManager: "siege" } as const;
      await client.patch(resource, { namespace: TENANT, name: named.metadata.name }, how, { signal });
    }
    return "written";
  } catch (error) {
    return signal.aborted ? "over" : ((error as { reason?: string }).reason ?? "failed");
  } finally {
    await client.close();
  }
}

/** Writes an object and deletes it. */
async function comeAndGo(site: Site, [resource, object]: readonly [Resource, { readonly metadata: { readonly name: string } }]) {
  const { server, caPem, token } = site.targets.kube;
  const written = await write(site, [[resource, object]]);
  const client = createKubeClient({ server, caPem, token: () => token, userAgent: "siege" });
  const deleted = client.delete(resource, { namespace: TENANT, name: object.metadata.name }, { signal: site.signal });
  await deleted.catch(() => undefined).finally(() => client.close());
  return written;
}

const app = (name: string, spec: object) => [VIRTUAL_APPS, { metadata: { namespace: TENANT, name }, spec }] as const;

function hugeStatefulSet(replicas: number): readonly (readonly [Resource, object])[] {
  const selector = { matchLabels: { component: "huge" } };
  const template = {
    metadata: { labels: { component: "huge" } },
    spec: { containers: [{ name: "main", image: "example.invalid/x" }] },
  };
  const set = {
    metadata: { namespace: TENANT, name: "huge", labels: { [ROLLING]: "all" } },
    spec: { replicas, serviceName: "huge", selector, template, updateStrategy: { type: "OnDelete" } },
  };
  const root = {
    prefix: "huge",
    targetStatefulSet: "huge",
    placement: "Balanced",
    canary: { replicas: 1, inNamespaces: ["tenant"] },
    auto: { everyShardReplicas: 1 },
    resourceSelector: [{ relateResources: [{ apiGroups: [""], resources: ["configmaps"] }] }],
  };
  const config = { metadata: { namespace: TENANT, name: "huge" }, spec: { controller: { leaderElectionName: "huge" }, root } };
  return [
    [STATEFUL_SETS, set],
    [SHARDING_CONFIGS, config],
  ];
}

export const TENANT_OBJECTS: readonly Attack[] = [
  {
    name: "app-dear-expression",
    on: "manager",
    perSecond: 0.1,
    maxOpen: 1,
    visit: (site) => write(site, [app("dear", deepExpressions(site.number))]),
  },
  {
    name: "app-large-selectors",
    on: "manager",
    perSecond: 0.2,
    maxOpen: 1,
    visit: (site) => write(site, [app("large", largeSelectors(site.number))]),
  },
  {
    name: "apps-by-number",
    on: "manager",
    perSecond: 1,
    maxOpen: 2,
    visit: (site) => write(site, [app(`many-${site.number % MAX_APPS}`, largeSelectors(site.number, 16))]),
  },
  {
    name: "apps-that-come-and-go",
    on: "manager",
    perSecond: 2,
    maxOpen: 2,
    visit: (site) => comeAndGo(site, app(`gone-${site.number}`, largeSelectors(site.number))),
  },
  {
    name: "huge-stateful-set",
    on: "manager",
    perSecond: 0.1,
    maxOpen: 1,
    // A StatefulSet's own bound is that of an int32.
    visit: (site) => write(site, hugeStatefulSet(2_147_483_647 - (site.number % 2))),
  },
];
