import { describe, expect, it } from "vitest";
import { group, limit, objects, sharded, snapshot, subset, table } from "../../../test/support/route-table.ts";
import type { ReviewSubject } from "../../kube/admission-review.ts";
import type { Labels } from "../../kube/label-selector.ts";
import { BUCKETS, clusterPlace, nameHash } from "../../kube/place.ts";
import { type ReviewRoute, routeReview } from "./route-review.ts";
import type { RouteTable } from "./table.ts";
import { viewOf } from "./view-of.ts";

const SUBJECT: ReviewSubject = {
  apiVersion: "admission.k8s.io/v1",
  uid: "u",
  resource: { group: "apps", version: "v1", resource: "deployments" },
  subresource: "",
  namespace: "prod",
  name: "web",
  operation: "CREATE",
  labels: {},
  oldLabels: undefined,
  dryRun: false,
};
const NODES = { group: "", version: "v1", resource: "nodes" };
const NAMESPACES = { group: "", version: "v1", resource: "namespaces" };

interface Asked {
  readonly me?: string;
  readonly as?: "owner" | "holder";
  /** The route before the fence. */
  readonly before?: RouteTable;
}

function ask(routes: RouteTable, about: Partial<ReviewSubject>, { me = "", as, before }: Asked = {}): ReviewRoute {
  const subject = { ...SUBJECT, ...about };
  const { resource } = subject.resource;
  const viewIn = (rules: RouteTable) => viewOf(snapshot(rules, { subset: me }), subject.resource.group, resource);
  const ownerBefore = (place: string, labels?: Labels) => before && viewIn(before).ownerOf(place, labels);
  return routeReview(subject, viewIn(routes), { subset: me, forwardedAs: as, ownerBefore });
}

const LOCAL = { kind: "local" };
const peer = (name: string, as = "owner") => ({ kind: "peer", to: { subset: name, as } });
const redirect = (name: string, as = "owner") => ({ kind: "redirect", to: { subset: name, as } });
const unavailable = (word: string) => ({ kind: "unavailable", message: expect.stringContaining(word) });

const app = table([subset("canary")], { prod: [], pilot: [0] });

describe("a review by namespace", () => {
  it.each<[string, Partial<ReviewSubject>, Asked, object]>([
    ["of an own namespace is local", {}, {}, LOCAL],
    ["of another subset's goes to its pods", { namespace: "pilot" }, {}, peer("canary")],
    ["of the default subset's goes to its pods", {}, { me: "canary" }, peer("")],
    ["that was forwarded to the owner is local", { namespace: "pilot" }, { me: "canary", as: "owner" }, LOCAL],
    ["that was forwarded wrongly goes back with the owner", {}, { me: "canary", as: "owner" }, redirect("")],
    ["of an unknown namespace waits for its owner", { namespace: "new" }, {}, { kind: "hold", place: "new" }],
    ["of a deletion is routed alike", { namespace: "pilot", operation: "DELETE" }, {}, peer("canary")],
    ["of a subresource is routed alike", { namespace: "pilot", subresource: "scale" }, {}, peer("canary")],
    ["of a dry run is routed alike", { namespace: "pilot", dryRun: true }, {}, peer("canary")],
    ["of a namespace goes by its name", { resource: NAMESPACES, namespace: "pilot", name: "pilot" }, {}, peer("canary")],
    ["of a new namespace cannot wait", { resource: NAMESPACES, namespace: "new", name: "new" }, { me: "canary" }, LOCAL],
    ["of a cluster-scoped object is the default subset's", { resource: NODES, namespace: "" }, { me: "canary" }, peer("")],
  ])("%s", (_, about, asked, expected) => {
    expect(ask(app, about, asked)).toEqual(expected);
  });

  it("is local for a resource that every subset sees", () => {
    const shared = table([subset("canary")], { pilot: [0] }, { sharedResources: [group("apps")] });
    expect(ask(shared, { namespace: "pilot" })).toEqual(LOCAL);
  });

  it("is allowed outside of a global limit", () => {
    expect(ask(table([limit()], { prod: [0], other: [] }), { namespace: "other" })).toEqual({ kind: "allowed" });
  });
});

describe("a review while a namespace moves", () => {
  const before = table([subset("canary")], { pilot: [] });
  const after = table([subset("canary")], { pilot: [0] });
  const fenced = table([subset("canary")], { pilot: [0] }, { fenced: ["pilot"] });
  const shared = table([subset("canary")], { pilot: [0] }, { sharedResources: [group("apps")] });
  const hold = { kind: "hold", place: "pilot" };
  it.each<[string, RouteTable, Asked, object]>([
    ["goes from its next owner to the old one", fenced, { me: "canary", before }, peer("", "holder")],
    ["goes back from the next owner with the old one", fenced, { me: "canary", before, as: "owner" }, redirect("", "holder")],
    ["is local at the old owner, whatever its table says", after, { me: "", as: "holder" }, LOCAL],
    ["goes from all others to the next owner", after, { me: "" }, peer("canary")],
    ["waits at a next owner that does not know the old one", fenced, { me: "canary" }, hold],
    ["waits if the old owner is no single one", fenced, { me: "canary", before: shared }, hold],
    ["is local after the grant", after, { me: "canary", as: "owner", before }, LOCAL],
  ])("%s", (_, routes, asked, expected) => {
    expect(ask(routes, { namespace: "pilot" }, asked)).toEqual(expected);
  });
});

describe("a review where labels divide", () => {
  const divided = table([objects("canary", "tier=canary", group("apps"))], { prod: [] });
  const canary = { tier: "canary" };
  it.each<[string, Partial<ReviewSubject>, object]>([
    ["of a create goes by the object", { labels: canary }, peer("canary")],
    ["of other labels is the default subset's", { labels: { tier: "x" } }, LOCAL],
    ["of an update goes by what the object becomes", { operation: "UPDATE", labels: canary, oldLabels: {} }, peer("canary")],
    ["of a deletion goes by the stored object", { operation: "DELETE", labels: undefined, oldLabels: canary }, peer("canary")],
    ["of a status goes by the object", { subresource: "status", operation: "UPDATE", labels: canary }, peer("canary")],
    ["of a subresource without the object's labels is local", { subresource: "scale", labels: canary }, LOCAL],
  ])("%s", (_, about, expected) => {
    expect(ask(divided, about)).toEqual(expected);
  });
});

describe("a review in a sharded family", () => {
  const family = table([sharded(group("apps")), subset("s0"), subset("s1")], { prod: [1], shop: [2], gap: [], "": [1] });
  it.each<[string, Partial<ReviewSubject>, object]>([
    ["of an own namespace is local", {}, LOCAL],
    ["of another shard's goes to it", { namespace: "shop" }, peer("s1")],
    ["of a namespace of no shard has nobody to answer", { namespace: "gap" }, unavailable("no shard")],
    ["of an unnamed resource is local", { resource: NODES, namespace: "" }, LOCAL],
    ["of a cluster-scoped object goes to the home shard", { namespace: "" }, LOCAL],
  ])("%s", (_, about, expected) => {
    expect(ask(family, about, { me: "s0" })).toEqual(expected);
  });

  it("of a cluster-scoped object goes by name where shards own those by name", () => {
    const rows = Object.fromEntries(BUCKETS.map((place) => [place, [place === clusterPlace("web") ? 2 : 1]]));
    const byName = table([sharded(group("apps")), subset("s0"), subset("s1")], { "": [1], ...rows });
    expect(ask(byName, { namespace: "" }, { me: "s0" })).toEqual(peer("s1"));
    expect(nameHash("other")).not.toBe(nameHash("web"));
    expect(ask(byName, { namespace: "", name: "other" }, { me: "s0" })).toEqual(LOCAL);
  });
});
