import { expect, it } from "vitest";
import { MeshError } from "../../base/errors.ts";
import { StatusError } from "../../kube/status.ts";
import { haveAllWanted } from "./workloads.ts";

const pod = (owner: string | undefined) => ({
  metadata: {
    namespace: "ops",
    ...(owner === undefined
      ? {}
      : { ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: owner, uid: "u", controller: true }] }),
  },
});
const asked = (
  makers: ReturnType<typeof pod>[],
  pods: ReturnType<typeof pod>[],
  replicas: Record<string, number | "deleted" | "no scale">,
) => {
  const request = async ({ path }: { readonly path: string }) => {
    const name = path.split("/").at(-2) ?? "";
    expect(path).toBe(`/apis/apps/v1/namespaces/ops/replicasets/${name}/scale`);
    const wanted = replicas[name];
    if (wanted === undefined) throw new StatusError("Forbidden", "no");
    if (wanted === "deleted") throw new StatusError("NotFound", "not found", { kind: "replicasets", name });
    if (wanted === "no scale") throw new StatusError("NotFound", "the server could not find the requested resource");
    return { spec: { replicas: wanted } };
  };
  return haveAllWanted({ request }, makers, pods, new AbortController().signal);
};

it("is yes if every workload has the pods that its scale asks for", async () => {
  const pods = [pod("a"), pod("a"), pod("b")];
  expect(await asked(pods, pods, { a: 2, b: 1 })).toBe("yes");
});
it("reads only the workloads of the given pods, and counts all their pods", async () => {
  const pods = [pod("a"), pod("a"), pod("b"), pod(undefined)];
  expect(await asked([pod("a")], pods, { a: 2 })).toBe("yes");
  expect(await asked([pod("a")], pods, { a: 3 })).toBe("no");
});
it("is yes for a deleted workload without pods", async () => {
  expect(await asked([pod("a")], [], { a: "deleted" })).toBe("yes");
  expect(await asked([pod("a")], [pod("a")], { a: "deleted" })).toBe("no");
});
it("is unknown if a scale cannot be read, and if no workload is known", async () => {
  const pods = [pod("a"), pod("b")];
  expect(await asked(pods, pods, { a: 1 })).toBe("unknown");
  expect(await asked(pods, pods, { a: 1, b: "no scale" })).toBe("unknown");
  expect(await asked([pod(undefined)], pods, {})).toBe("unknown");
  expect(await asked([], pods, {})).toBe("unknown");
});
it("is no for a workload whose API does not answer", async () => {
  const request = () => Promise.reject(new MeshError("KUBE_TIMEOUT", "reading a workload's scale: no answer"));
  expect(await haveAllWanted({ request }, [pod("a")], [pod("a")], new AbortController().signal)).toBe("no");
});
it.each(["TooManyRequests", "InternalError", "ServiceUnavailable", "Timeout"] as const)(
  "is no for %s as well",
  async (reason) => {
    const request = () => Promise.reject(new StatusError(reason, "not now"));
    expect(await haveAllWanted({ request }, [pod("a")], [], new AbortController().signal)).toBe("no");
  },
);
it("throws when its caller aborts", async () => {
  const request = () => Promise.reject(new MeshError("LEADERSHIP_LOST", "leading: the lease is lost"));
  await expect(haveAllWanted({ request }, [pod("a")], [], AbortSignal.abort(new Error("over")))).rejects.toThrow("over");
});
it.each([
  { kind: "../../../../version?x=" },
  { kind: "ReplicaSet/x" },
  { kind: "%2e%2e" },
  { kind: "Replica#Set" },
  { kind: "" },
  { apiVersion: "../apis" },
  { apiVersion: "apps/.." },
  { apiVersion: "apps/v1/namespaces" },
  { apiVersion: "v1?x=" },
  { apiVersion: "" },
  { name: ".." },
  { name: "a/b" },
])("an owner reference, which whoever creates a pod writes, leads the manager to no other path: %o", async (more) => {
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "a", uid: "u", controller: true, ...more };
  const crafted = { metadata: { namespace: "ops", ownerReferences: [owner] } };
  const paths: string[] = [];
  const request = async ({ path }: { readonly path: string }) => {
    paths.push(path);
    return { spec: { replicas: 1 } };
  };
  expect(await haveAllWanted({ request }, [crafted], [crafted], new AbortController().signal)).toBe("unknown");
  expect(paths).toEqual([]);
});
it("reads the scale of a custom resource and of the core group's kinds", async () => {
  const paths: string[] = [];
  const request = async ({ path }: { readonly path: string }) => {
    paths.push(path);
    return { spec: { replicas: 1 } };
  };
  const owners = [
    { apiVersion: "apps.kruise.io/v1alpha1", kind: "CloneSet", name: "a.b" },
    { apiVersion: "v1", kind: "ReplicationController", name: "a" },
  ];
  for (const owner of owners) {
    const made = { metadata: { namespace: "ops", ownerReferences: [{ ...owner, uid: "u", controller: true }] } };
    expect(await haveAllWanted({ request }, [made], [made], new AbortController().signal)).toBe("yes");
  }
  expect(paths).toEqual([
    "/apis/apps.kruise.io/v1alpha1/namespaces/ops/clonesets/a.b/scale",
    "/api/v1/namespaces/ops/replicationcontrollers/a/scale",
  ]);
});
