import { describe, expect, it } from "vitest";
import { fleetCluster as meshCluster } from "../../../test/support/mesh-cluster.ts";
import { createCa } from "../../base/certificates.ts";
import { acceptClusters } from "./accept-clusters.ts";
import { clusterRoutes } from "./cluster-routes.ts";

describe("the MeshClusters of a namespace", () => {
  it("are known by the hosts and ports of their servers, in one form", () => {
    const servers = [
      "https://EU.example/k8s/clusters/c-1",
      "https://10.0.0.5:6443",
      "https://[2001:DB8::1]:6443",
      "https://eu.example:443",
    ];
    const { accepted } = acceptClusters([meshCluster("eu", { servers }, { labels: { region: "eu" } })]);
    expect(accepted).toEqual([
      {
        name: "eu",
        labels: { region: "eu" },
        servers: ["10.0.0.5:6443", "[2001:db8::1]:6443", "eu.example:443"],
        drainMs: 60_000,
      },
    ]);
  });

  it("the oldest counts of several that have a server or an identity in common; the others name it", () => {
    const eu = meshCluster("eu", { servers: ["https://eu.example"], clusterID: "id-1" });
    const sameServer = meshCluster(
      "second",
      { servers: ["https://eu.example:443"] },
      { creationTimestamp: "2026-01-02T00:00:00Z" },
    );
    const sameId = meshCluster(
      "a",
      { servers: ["https://other.example"], clusterID: "id-1" },
      { creationTimestamp: "2026-01-02T00:00:00Z" },
    );
    const { accepted, refused } = acceptClusters([sameServer, sameId, eu]);
    expect(accepted.map(({ name }) => name)).toEqual(["eu"]);
    expect(refused.get("second")).toMatchObject({
      reason: "AlreadyKnown",
      message: expect.stringContaining("server eu.example:443 is that of MeshCluster eu"),
    });
    expect(refused.get("a")).toMatchObject({ message: expect.stringContaining("clusterID id-1 is that of MeshCluster eu") });
  });

  it("have the objects by which operators find them; an object that several name is that of the oldest", () => {
    const secret = { resource: "secrets", name: "fleet" };
    const profile = { apiGroup: "multicluster.x-k8s.io", resource: "clusterprofiles", name: "us" };
    const eu = meshCluster("eu", { servers: ["https://eu.example"], discoveredBy: [secret] });
    const us = meshCluster(
      "us",
      { servers: ["https://us.example"], interception: "None", discoveredBy: [secret, profile] },
      { creationTimestamp: "2026-01-02T00:00:00Z" },
    );
    const { accepted, refused } = acceptClusters([us, eu]);
    expect(accepted.map(({ name, objects }) => [name, objects])).toEqual([
      ["eu", [{ group: "", resource: "secrets", name: "fleet" }]],
      ["us", [{ group: "multicluster.x-k8s.io", resource: "clusterprofiles", name: "us" }]],
    ]);
    expect(accepted[1]).toMatchObject({ servers: ["us.example:443"], isOpen: true, drainMs: 0 });
    expect([...refused]).toEqual([
      [
        "us",
        {
          reason: "AlreadyKnown",
          message: 'spec.discoveredBy: secrets "fleet" is that of MeshCluster eu: name each object in one MeshCluster',
        },
      ],
    ]);
  });

  it("a server of one that is refused belongs to the one that counts, so that no edit of another opens it to every pod", () => {
    const eu = meshCluster("eu", { servers: ["https://eu.example", "https://us.example"] });
    const us = meshCluster(
      "us",
      { servers: ["https://us.example", "https://10.0.0.5"], drainSeconds: 90 },
      { creationTimestamp: "2026-01-02T00:00:00Z" },
    );
    const { accepted } = acceptClusters([eu, us]);
    const servers = ["10.0.0.5:443", "eu.example:443", "us.example:443"];
    expect(accepted).toEqual([{ name: "eu", labels: {}, servers, drainMs: 90_000 }]);
  });

  it("one with a mistake keeps its valid servers, so that no edit opens them to every pod", () => {
    const eu = meshCluster("eu", { servers: ["https://eu.example", "https://eu.example:99999", 5], drainSeconds: 0 });
    const { accepted, refused } = acceptClusters([eu]);
    expect(accepted).toEqual([{ name: "eu", labels: {}, servers: ["eu.example:443"], drainMs: 60_000 }]);
    expect(refused.get("eu")).toMatchObject({ reason: "Invalid", message: expect.stringContaining("spec.servers[1]") });
  });

  it("the valid servers and objects of one that is not valid count: a mistake opens nothing else", () => {
    const secret = { resource: "secrets", name: "eu" };
    const servers = ["https://eu.example", "http://typo.example", 7];
    const discoveredBy = [secret, { resource: "namespaces", name: "x" }, { resource: "projects", name: "x" }, "odd"];
    const { accepted, refused } = acceptClusters([
      meshCluster("eu", { servers, discoveredBy }),
      meshCluster("odd", { servers: 3 }),
    ]);
    expect(accepted).toMatchObject([
      { name: "eu", servers: ["eu.example:443"], objects: [{ group: "", resource: "secrets", name: "eu" }] },
    ]);
    expect([...refused.keys()]).toEqual(["eu", "odd"]);
  });

  describe("one with a mistake in another field", () => {
    // An earlier version accepted it, so it is stored.
    const servers = ["https://eu.example", "https://eu.example:99999"];
    const eu = (spec: object) => meshCluster("eu", { servers, ...spec });

    it.each(["id-1", "id 1"])("is still the only cluster with its identity %j", (clusterID) => {
      const at = { creationTimestamp: "2026-01-02T00:00:00Z" };
      const us = meshCluster("us", { servers: ["https://us.example"], clusterID: "id-1" }, at);
      const same = { ...us, spec: { ...us.spec, clusterID } };
      const { accepted, refused } = acceptClusters([eu({ clusterID }), same]);
      expect(accepted).toMatchObject([{ name: "eu", servers: ["eu.example:443", "us.example:443"] }]);
      expect([...refused.keys()]).toEqual(["eu", "us"]);
    });

    it("does not make its next owner wait for less than drainSeconds", () => {
      expect(acceptClusters([eu({ drainSeconds: 300 })]).accepted).toMatchObject([{ drainMs: 300_000 }]);
    });

    it("with interception None does not become closed to pods that could reach it", () => {
      expect(acceptClusters([eu({ interception: "None" })]).accepted).toMatchObject([{ isOpen: true }]);
      expect(acceptClusters([eu({ interception: "none" })]).accepted[0]).not.toHaveProperty("isOpen");
    });
  });

  it("one that is deleted does not count, and one that is not valid says why", () => {
    const ending = meshCluster("eu", { servers: ["https://eu.example"] }, { deletionTimestamp: "2026-01-02T00:00:00Z" });
    const { accepted, refused } = acceptClusters([
      ending,
      meshCluster("bad", { servers: ["http://eu.example"] }),
      meshCluster("none", {}),
    ]);
    expect(accepted).toEqual([]);
    expect([...refused.keys()]).toEqual(["bad", "none"]);
    expect(refused.get("bad")?.message).toContain("spec.servers[0]");
  });

  describe("with interception: Terminate", () => {
    const terminate = { kubeconfigSecret: "eu-namespaces", tlsServerName: "kubernetes" };
    const divided = (name: string, at = 0) =>
      meshCluster(
        name,
        { servers: [`https://${name}.example/prefix`], interception: "Terminate", terminate },
        { creationTimestamp: `2026-01-01T00:00:${String(at).padStart(2, "0")}Z` },
      );

    it("are reached at the first server, with its path, by the CA and the name of the section", () => {
      const { certPem } = createCa({ commonName: "eu", now: 0 });
      const certificateAuthorityData = Buffer.from(`a comment\n${certPem}`).toString("base64");
      const servers = ["https://eu.example/k8s/clusters/c-1", "https://10.0.0.5:6443"];
      const spec = { servers, interception: "Terminate", terminate: { ...terminate, certificateAuthorityData } };
      const { accepted, refused } = acceptClusters([meshCluster("eu", spec)]);
      expect(refused.size).toBe(0);
      expect(accepted).toEqual([
        {
          name: "eu",
          labels: {},
          servers: ["10.0.0.5:6443", "eu.example:443"],
          drainMs: 60_000,
          upstream: {
            url: "https://eu.example/k8s/clusters/c-1",
            paths: ["10.0.0.5:6443", "eu.example:443/k8s/clusters/c-1"],
            ca: certPem,
            serverName: "kubernetes",
          },
          kubeconfigSecret: "eu-namespaces",
        },
      ]);
      const owners = () => new Map([["eu", ""]]);
      expect(clusterRoutes(accepted, owners, new Map())[0]).not.toHaveProperty("kubeconfigSecret");
    });

    it.each([
      ["the section is missing", { terminate: undefined }],
      ["the section has no Secret", { terminate: {} }],
      ["another field is wrong", { drainSeconds: 0 }],
      ["it also names objects by which operators find the cluster", { discoveredBy: [{ resource: "secrets", name: "eu" }] }],
      ["the interception has a typo", { interception: "terminate" }],
    ])("stay closed, and belong to no subset whole, if %s", (_, mistake) => {
      const spec = { servers: ["https://eu.example"], interception: "Terminate", terminate, ...mistake };
      const { accepted, refused } = acceptClusters([meshCluster("eu", spec)]);
      expect(refused.get("eu")?.reason).toBe("Invalid");
      expect(accepted).toMatchObject([{ servers: ["eu.example:443"], upstream: { url: "https://eu.example" } }]);
      expect(accepted[0]).not.toHaveProperty("isOpen");
      expect(accepted[0]).not.toHaveProperty("objects");
    });

    it("keep their Secret if another field is wrong, and lose it with the section", () => {
      const spec = { servers: ["https://eu.example"], interception: "Terminate", terminate, drainSeconds: 0 };
      expect(acceptClusters([meshCluster("eu", spec)]).accepted).toMatchObject([{ kubeconfigSecret: "eu-namespaces" }]);
      const bare = { ...spec, terminate: undefined };
      expect(acceptClusters([meshCluster("eu", bare)]).accepted[0]).not.toHaveProperty("kubeconfigSecret");
    });

    const behind = (name: string, path: string, at: number, more: object = { interception: "Terminate", terminate }) =>
      meshCluster(name, { servers: [`https://gw.example${path}`], ...more }, { creationTimestamp: `2026-01-01T00:00:0${at}Z` });

    it("count each by its path behind one host and port; of two with one path, in any spelling, the older counts", () => {
      const { accepted, refused } = acceptClusters([
        behind("a", "/clusters/a", 0),
        behind("b", "/clusters/b/", 1),
        behind("root", "", 2),
        behind("again", "//clusters/%62/x/../", 3),
      ]);
      expect(accepted.map(({ name, servers, upstream }) => [name, servers, upstream?.paths])).toEqual([
        ["a", ["gw.example:443"], ["gw.example:443/clusters/a"]],
        ["b", ["gw.example:443"], ["gw.example:443/clusters/b"]],
        ["root", ["gw.example:443"], ["gw.example:443"]],
      ]);
      const message = "server gw.example:443/clusters/b is that of MeshCluster b: keep one MeshCluster for each cluster";
      expect([...refused]).toEqual([["again", { reason: "AlreadyKnown", message }]]);
    });

    it.each([
      ["a whole cluster", behind("a", "/a", 0, {}), behind("b", "/b", 1)],
      ["several divided ones", behind("a", "/a", 0), behind("b", "/b", 1, {})],
    ])("share no host and port with whole clusters: the first of them has %s", (_, older, younger) => {
      const { accepted, refused } = acceptClusters([older, younger]);
      expect(accepted.map(({ name, servers }) => [name, servers])).toEqual([["a", ["gw.example:443"]]]);
      expect(refused.get("b")?.message).toMatch(
        /^server gw.example:443 is that of MeshCluster a: .*need interception: Terminate$/,
      );
    });

    it("the youngest beyond 32 is refused, has no Secret to read, and stays closed", () => {
      const many = Array.from({ length: 33 }, (_, at) => divided(`c-${at}`, 33 - at));
      const { accepted, refused } = acceptClusters(many);
      expect([...refused]).toEqual([["c-0", { reason: "TooMany", message: expect.stringContaining("no pod can reach") }]]);
      const [youngest, ...others] = accepted;
      expect(youngest).toMatchObject({ name: "c-0", upstream: { url: "https://c-0.example/prefix" } });
      expect(youngest).not.toHaveProperty("kubeconfigSecret");
      expect(others.every(({ kubeconfigSecret }) => kubeconfigSecret === "eu-namespaces")).toBe(true);
    });

    it("a younger one with the same server changes nothing of the older", () => {
      const tunnel = meshCluster("eu", { servers: ["https://eu.example"] });
      const younger = meshCluster(
        "second",
        { servers: ["https://eu.example"], interception: "Terminate", terminate },
        { creationTimestamp: "2026-01-02T00:00:00Z" },
      );
      const { accepted, refused } = acceptClusters([tunnel, younger]);
      expect(accepted).toEqual([{ name: "eu", labels: {}, servers: ["eu.example:443"], drainMs: 60_000 }]);
      expect(refused.get("second")?.reason).toBe("AlreadyKnown");
    });
  });

  it("are at most 500, also if they are refused: else the servers of one cluster could be any number", () => {
    const created = (at: number) => ({ creationTimestamp: new Date(Date.UTC(2026, 0, 1, 0, 0, at)).toISOString() });
    const many = Array.from({ length: 502 }, (_, at) =>
      meshCluster(`c-${at}`, { servers: [`https://c-${at}.example`], clusterID: "same" }, created(at)),
    );
    const { accepted, refused } = acceptClusters(many);
    expect(accepted.map(({ servers }) => servers.length)).toEqual([500]);
    expect([refused.get("c-499")?.reason, refused.get("c-500")?.reason]).toEqual(["AlreadyKnown", "TooMany"]);
  });

  it("name objects in characters of one byte each, since a route has a bound in bytes", () => {
    const RBAC = "rbac.authorization.k8s.io";
    const reasonOf = (object: object) =>
      acceptClusters([
        meshCluster("eu", {
          servers: ["https://eu.example"],
          discoveredBy: [{ resource: "clusterroles", apiGroup: RBAC, ...object }],
        }),
      ]).refused.get("eu")?.reason;
    const groups = [RBAC, '"', "é"].map((apiGroup) => reasonOf({ apiGroup, name: "eu" }));
    expect(groups).toEqual([undefined, "Invalid", "Invalid"]);
    const names = ["eu-1.example", "system:eu_1", "$(a)", "é", "\u0001", '"', "\\", "a/b", "a b"].map((name) =>
      reasonOf({ name }),
    );
    expect(names).toEqual([...Array.from({ length: 3 }), ...Array.from({ length: 6 }, () => "Invalid")]);
  });

  it("are read once: when one changes, the others cost nothing but a look at their names", () => {
    let reads = 0;
    const { spec, ...rest } = meshCluster("eu", { servers: ["https://eu.example"] });
    const counted = Object.defineProperty({ ...rest, spec }, "spec", {
      enumerable: true,
      get() {
        reads++;
        return spec;
      },
    });
    acceptClusters([counted]);
    const first = reads;
    expect(acceptClusters([counted, meshCluster("us", { servers: ["https://us.example"] })]).accepted).toHaveLength(2);
    expect([first > 0, reads]).toEqual([true, first]);
  });
});
