import { describe, expect, it } from "vitest";
import { mergePatch } from "../../../test/support/fake-kube-client.ts";
import { type ClusterProfile, clusterProfiles } from "../../api/cluster-profile.ts";
import { type MeshCluster, validateMeshCluster } from "../../api/mesh-cluster.ts";
import { MAX_CLUSTERS } from "../../mesh/contract/route-type.ts";
import { planMeshClusters } from "./plan-mesh-clusters.ts";

const RESOURCE = clusterProfiles("v1alpha1");

function profileOf(name: string, status: unknown, metadata: object = {}): ClusterProfile {
  return { metadata: { namespace: "fleet", name, uid: `uid-${name}`, ...metadata }, status };
}
const at = (...servers: unknown[]) => ({
  accessProviders: servers.map((server, index) => ({ name: `p-${index}`, cluster: { server } })),
});
const plan = (profiles: readonly ClusterProfile[], stored: readonly MeshCluster[] = [], now = "2026-02-01T00:00:00Z") =>
  planMeshClusters(profiles, stored, RESOURCE, Date.parse(now));
const made = (profile: ClusterProfile, spec: object = {}): MeshCluster => {
  const object = plan([profile]).created[0]?.object as MeshCluster;
  const metadata = { ...object.metadata, uid: "m", resourceVersion: "1" };
  return { ...object, metadata, spec: { ...object.spec, ...spec } } as MeshCluster;
};
/** The MeshCluster after the planned change. */
const next = (profile: ClusterProfile, stored: MeshCluster) =>
  mergePatch(stored, plan([profile], [stored]).changed[0]?.patch) as MeshCluster;
const reasons = (...args: Parameters<typeof plan>) => plan(...args).notices.map(({ reason }) => reason);

describe("the MeshCluster of a ClusterProfile", () => {
  it("has its name and labels, the servers of all providers, its identity, and the profile as its controller", () => {
    const status = {
      ...at("https://eu.example:6443", "https://10.0.0.5:6443"),
      credentialProviders: [
        { name: "old", cluster: { server: "https://EU.example:6443/k8s" } },
        { name: "other", cluster: { server: "https://old.example" } },
      ],
      properties: [{ name: "clusterset.k8s.io/cluster-id", value: "id-1" }],
    };
    const [created] = plan([profileOf("eu-1", status, { labels: { region: "eu" } })]).created;
    expect(created?.object).toEqual({
      apiVersion: "ctrlmesh.kruise.io/v1alpha1",
      kind: "MeshCluster",
      metadata: {
        namespace: "fleet",
        name: "eu-1",
        labels: { region: "eu" },
        ownerReferences: [
          {
            apiVersion: "multicluster.x-k8s.io/v1alpha1",
            kind: "ClusterProfile",
            name: "eu-1",
            uid: "uid-eu-1",
            controller: true,
          },
        ],
      },
      spec: {
        servers: ["https://eu.example:6443", "https://10.0.0.5:6443", "https://old.example"],
        clusterID: "id-1",
        discoveredBy: [{ apiGroup: "multicluster.x-k8s.io", resource: "clusterprofiles", name: "eu-1" }],
      },
    });
    expect(validateMeshCluster(created?.object).ok).toBe(true);
  });

  it("has the identity of the About API's property if there is no other", () => {
    const properties = [{ name: "cluster.clusterset.k8s.io", value: "id-2" }];
    expect(made(profileOf("eu", { ...at("https://eu.example"), properties })).spec.clusterID).toBe("id-2");
  });

  it("is not written if nothing has changed", () => {
    const profile = profileOf("eu", at("https://eu.example"), { labels: { region: "eu" } });
    expect(plan([profile], [made(profile, { drainSeconds: 5 })])).toEqual({ created: [], changed: [], notices: [] });
  });

  it("follows servers, labels and identity of the profile, and keeps what is the user's", () => {
    const before = made(profileOf("eu", at("https://eu.example"), { labels: { region: "eu", old: "1" } }), {
      drainSeconds: 5,
      discoveredBy: [],
    });
    const status = { ...at("https://new.example"), properties: [{ name: "clusterset.k8s.io/cluster-id", value: "id-1" }] };
    const after = next(profileOf("eu", status, { labels: { region: "us" } }), before);
    expect(after.spec).toEqual({ servers: ["https://new.example"], clusterID: "id-1", drainSeconds: 5, discoveredBy: [] });
    expect(after.metadata.labels).toEqual({ region: "us" });
  });

  it("keeps its servers and identity when the profile loses them, because that would open the cluster to every pod", () => {
    const properties = [{ name: "clusterset.k8s.io/cluster-id", value: "id-1" }];
    const stored = made(profileOf("eu", { ...at("https://eu.example"), properties }));
    for (const status of [
      undefined,
      {},
      { accessProviders: [] },
      { accessProviders: [{ name: "p" }] },
      at("http://eu.example"),
    ]) {
      expect(plan([profileOf("eu", status)], [stored])).toMatchObject({
        created: [],
        changed: [],
        notices: [{ reason: expect.stringMatching(/^(NoServers|ServerNotUsable)$/) }],
      });
    }
    expect(plan([profileOf("eu", at("https://eu.example"))], [stored]).changed).toEqual([]);
  });

  it("is kept and gets the new profile as its controller when a profile of its name is created again", () => {
    const stored = made(profileOf("eu", at("https://eu.example")));
    const after = next(profileOf("eu", at("https://eu.example"), { uid: "another" }), stored);
    expect(after.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual(["another"]);
  });

  it("keeps the owners that others have added", () => {
    const profile = profileOf("eu", at("https://eu.example"));
    const stored = made(profile);
    const other = { apiVersion: "v1", kind: "ConfigMap", name: "x", uid: "x" };
    const owned = { ...stored, metadata: { ...stored.metadata, ownerReferences: [other] } } as MeshCluster;
    expect(plan([profile], [owned]).notices).toMatchObject([{ reason: "MeshClusterExists" }]);
    const both = {
      ...stored,
      metadata: { ...stored.metadata, ownerReferences: [...(stored.metadata.ownerReferences ?? []), other] },
    };
    const after = next(profileOf("eu", at("https://new.example")), both as MeshCluster);
    expect(after.metadata.ownerReferences?.map(({ uid }) => uid)).toEqual(["uid-eu", "x"]);
  });
});

describe("no MeshCluster is made or changed", () => {
  it("if a person wrote one with the name of the profile, and an Event says so", () => {
    const stored = {
      metadata: { namespace: "fleet", name: "eu" },
      spec: { servers: ["https://x.example"] },
    } as unknown as MeshCluster;
    const { created, changed, notices } = plan([profileOf("eu", at("https://eu.example"))], [stored]);
    expect([created, changed]).toEqual([[], []]);
    expect(notices[0]?.message).toBe("MeshCluster eu was not made from this ClusterProfile, so the manager does not change it");
  });

  it("for a profile without a usable https server, and an Event names the field", () => {
    const message = (status: unknown) => {
      const { created, notices } = plan([profileOf("eu", status)]);
      expect(created).toEqual([]);
      return notices[0]?.message;
    };
    expect(message({})).toBe(
      "status.accessProviders has no cluster.server, so the manager does not make or change the MeshCluster",
    );
    expect(message(at("http://eu.example"))).toMatch(/^status\.accessProviders\[0\]\.cluster\.server must be a URL/);
    expect(message({ credentialProviders: [{ cluster: { server: 5 } }] })).toMatch(/^status\.credentialProviders\[0\]/);
    expect(message(at("https://eu.example:99999"))).toContain("has no valid host and port");
  });

  it("for a new profile whose status is not written yet; an Event follows only if that takes a minute", () => {
    const profile = profileOf("eu", undefined, { creationTimestamp: "2026-01-01T00:00:00Z" });
    expect(reasons([profile], [], "2026-01-01T00:00:59Z")).toEqual([]);
    expect(reasons([profile], [], "2026-01-01T00:01:00Z")).toEqual(["NoServers"]);
    expect(reasons([profileOf("eu", at("http://x"), profile.metadata)], [], "2026-01-01T00:00:01Z")).toEqual(["ServerNotUsable"]);
  });

  it("for a profile that is being deleted", () => {
    const profile = profileOf("eu", at("https://eu.example"), { deletionTimestamp: "2026-01-01T00:00:00Z" });
    expect(plan([profile])).toEqual({ created: [], changed: [], notices: [] });
  });

  it(`beyond ${MAX_CLUSTERS} in a namespace, counted with those that persons wrote; the oldest profiles are first`, () => {
    const stored = {
      metadata: { namespace: "fleet", name: "own" },
      spec: { servers: ["https://x.example"] },
    } as unknown as MeshCluster;
    const profiles = Array.from({ length: MAX_CLUSTERS }, (_, index) =>
      profileOf(`c-${index}`, at(`https://c-${index}.example`), { creationTimestamp: `2026-01-01T00:00:00.${900 - index}Z` }),
    );
    const { created, notices } = plan(profiles, [stored]);
    expect(created).toHaveLength(MAX_CLUSTERS - 1);
    expect(notices.map(({ profile, reason }) => [profile.metadata.name, reason])).toEqual([["c-0", "TooManyMeshClusters"]]);
  });
});

describe("a hostile profile", () => {
  it("with a thousand providers makes one Event of bounded length", () => {
    const many = at(...Array.from({ length: 1_000 }, (_, index) => `https://c-${index}.example`));
    expect(reasons([profileOf("eu", many)])).toEqual(["TooManyServers"]);
    const invalid = at(...Array.from({ length: 60 }, (_, index) => `${index}${"x".repeat(100_000)}`));
    const [notice] = plan([profileOf("eu", invalid)]).notices;
    expect(notice?.message).toContain("and 57 more");
    expect(notice?.message.length).toBeLessThan(1_000);
    const same = at(...Array.from({ length: 1_000 }, () => "https://eu.example"));
    expect(made(profileOf("eu", same)).spec.servers).toEqual(["https://eu.example"]);
  });

  it("with thousands of servers is refused before each of them is checked", () => {
    const invalid = at(...Array.from({ length: 25_000 }, (_, index) => `http://c-${index}.example`));
    expect(reasons([profileOf("eu", invalid)])).toEqual(["TooManyServers"]);
  });

  it("with long labels makes an Event", () => {
    const labels = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`label-${index}`, "x".repeat(63)]));
    expect(reasons([profileOf("eu", at("https://eu.example"), { labels })])).toEqual(["LabelsTooLong"]);
  });

  it("with a name of 253 characters gets a MeshCluster, and one with an identity of 1,024 gets it without an identity", () => {
    const name = `${"a".repeat(126)}.${"b".repeat(126)}`;
    expect(validateMeshCluster(made(profileOf(name, at("https://eu.example")))).ok).toBe(true);
    const properties = [{ name: "clusterset.k8s.io/cluster-id", value: "x".repeat(1_024) }];
    expect(made(profileOf("eu", { ...at("https://eu.example"), properties })).spec).not.toHaveProperty("clusterID");
  });

  it.each(["x".repeat(300), " ", "id 1", "\u0435u", "id\n"])(
    "with the identity %j is made without it, and a notice says what that means",
    (value) => {
      const profile = profileOf("eu", {
        ...at("https://eu.example"),
        properties: [{ name: "clusterset.k8s.io/cluster-id", value }],
      });
      const { created, notices } = plan([profile]);
      expect(created.map(({ object }) => object.spec)).toEqual([expect.not.objectContaining({ clusterID: expect.anything() })]);
      expect(notices).toMatchObject([
        { reason: "IdentityNotUsable", message: expect.stringMatching(/^status\.properties: the identity of the cluster must/) },
      ]);
    },
  );

  it("with a server that is no text says so in plain words", () => {
    expect(plan([profileOf("eu", at(5))]).notices).toMatchObject([
      { message: expect.stringMatching(/^status\.accessProviders\[0\]\.cluster\.server must be a string, not a number: /) },
    ]);
  });

  it.each([null, 5, "x", [], { accessProviders: "x", properties: 5 }, { accessProviders: [null, 5, [], { cluster: null }] }])(
    "with the status %j does not make the others wait",
    (status) => {
      const { created, notices } = plan([profileOf("bad", status), profileOf("good", at("https://eu.example"))]);
      expect(created.map(({ object }) => object.metadata.name)).toEqual(["good"]);
      expect(notices).toHaveLength(1);
    },
  );

  it("with some servers that are not valid gives the others, and an Event names the rest", () => {
    const { created, notices } = plan([profileOf("eu", at("https://eu.example", "https://user@eu.example", "ftp://x"))]);
    expect(created[0]?.object.spec.servers).toEqual(["https://eu.example"]);
    expect(notices[0]?.message).toMatch(/accessProviders\[1\].*accessProviders\[2\].*every pod can reach these servers$/);
  });
});
