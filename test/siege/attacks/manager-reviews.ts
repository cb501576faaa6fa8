// Attacks on the manager's webhooks (9443) with reviews that any pod may send: bodies that become much more than they weigh, and edits of apps
// that cost more than they look.

import type { Attack, Site } from "../attack.ts";
import { deepExpressions, largeSelectors } from "../costly-app.ts";
import { visit } from "../dial.ts";
import { heavyReview, post, prepareHeavyReviews, review } from "../requests.ts";

const ANSWER_MS = 20_000;
const VIRTUAL_APPS = { group: "ctrlmesh.kruise.io", version: "v1alpha1", resource: "virtualapps" };

const send = (site: Site, path: string, body: Buffer | string) =>
  visit(site, site.targets.webhook, { parts: [post(path, body)], holdMs: ANSWER_MS });

/** An edit from "everything to one subset" to the costly one, which asks for the namespaces that move. */
function edit(costly: object, before: object): string {
  const name = "siege-edit";
  const object = (spec: object) => ({
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { namespace: "tenant", name },
    spec,
  });
  const objects = { object: object(costly), oldObject: object(before) };
  return review({ resource: VIRTUAL_APPS, operation: "UPDATE", namespace: "tenant", name, ...objects });
}

export const MANAGER_REVIEWS: readonly Attack[] = [
  {
    name: "inject-heavy-unknown-app",
    on: "manager",
    perSecond: 1,
    maxOpen: 16,
    prepare: prepareHeavyReviews,
    visit: (site) => send(site, "/inject/foo-system/nosuchapp", heavyReview(site.number, "foo-system")),
  },
  {
    name: "inject-heavy-known-app",
    on: "manager",
    perSecond: 0.5,
    maxOpen: 8,
    visit: (site) => send(site, "/inject/foo-system/foo-operator", heavyReview(site.number, "foo-system")),
  },
  {
    name: "inject-unselected-pods",
    on: "manager",
    perSecond: 40,
    maxOpen: 100,
    visit(site) {
      const object = { metadata: { name: "x", labels: { component: "another" } }, spec: { containers: [] } };
      const app = ["foo-operator", `unknown-${site.number}`][site.number % 2];
      return send(site, `/inject/foo-system/${app}`, review({ object }));
    },
  },
  {
    name: "validate-dear-expression",
    on: "manager",
    perSecond: 0.2,
    maxOpen: 4,
    visit: (site) => send(site, "/validate", edit(deepExpressions(site.number), largeSelectors(0, 1))),
  },
  {
    name: "validate-large-selectors",
    on: "manager",
    perSecond: 0.5,
    maxOpen: 8,
    visit: (site) => send(site, "/validate", edit(largeSelectors(site.number), largeSelectors(0, 1))),
  },
];
