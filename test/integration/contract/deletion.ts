// Contract: deletion, finalizers, preconditions, garbage collection, namespaces, collections.
import { describe, expect, it } from "vitest";
import { eventually, JSON_PATCH, MERGE_PATCH } from "./client.ts";
import { type Context, configMap, pod, secret, WIDGETS, widget } from "./context.ts";

export function describeDeletion(context: Context): void {
  const expectGone = (path: string) =>
    eventually(async () => {
      expect((await context.client.get(path)).code).toBe(404);
    });

  describe("deletion", () => {
    it("answers a delete with a Status that names the deleted object, or with the object", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const { body } = await context.client.post(path, configMap("one"));
      const deleted = await context.client.delete(`${path}/one`);
      expect(deleted).toMatchObject({
        code: 200,
        body: { kind: "Status", status: "Success", details: { name: "one", kind: "configmaps", uid: body.metadata.uid } },
      });
      expect((await context.client.delete(`${path}/one`)).code).toBe(404);
      const account = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "one" } };
      await context.client.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, account);
      expect((await context.client.delete(`/api/v1/namespaces/${namespace}/serviceaccounts/one`)).body.kind).toBe(
        "ServiceAccount",
      );
    });

    it("waits for finalizers", async () => {
      const namespace = await context.namespace();
      const path = `${WIDGETS}/namespaces/${namespace}/widgets`;
      await context.client.post(path, widget("one", { size: 1 }, { finalizers: ["contract.test/hold"] }));
      const marked = await context.client.delete(`${path}/one`);
      expect(marked).toMatchObject({
        code: 200,
        body: { kind: "Widget", metadata: { deletionGracePeriodSeconds: 0, generation: 2 } },
      });
      expect(marked.body.metadata.deletionTimestamp).toBeTruthy();
      expect((await context.client.get(`${path}/one`)).body.metadata.deletionTimestamp).toBe(
        marked.body.metadata.deletionTimestamp,
      );
      const more = await context.client.patch(`${path}/one`, MERGE_PATCH, {
        metadata: { finalizers: ["contract.test/hold", "contract.test/more"] },
      });
      expect(more.code).toBe(422);
      expect((await context.client.patch(`${path}/one`, JSON_PATCH, [{ op: "remove", path: "/metadata/finalizers" }])).code).toBe(
        200,
      );
      expect((await context.client.get(`${path}/one`)).code).toBe(404);
    });

    it("honours preconditions", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const { body } = await context.client.post(path, configMap("one"));
      const options = (preconditions: object) => ({ apiVersion: "v1", kind: "DeleteOptions", preconditions });
      expect((await context.client.delete(`${path}/one`, options({ uid: "00000000-0000-0000-0000-000000000000" }))).code).toBe(
        409,
      );
      expect((await context.client.delete(`${path}/one`, options({ resourceVersion: "1" }))).code).toBe(409);
      expect((await context.client.delete(`${path}/one`, options({ uid: body.metadata.uid }))).code).toBe(200);
    });

    it("keeps the object in a dry run", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      await context.client.post(path, configMap("one"));
      expect((await context.client.delete(`${path}/one?dryRun=All`)).code).toBe(200);
      expect((await context.client.get(`${path}/one`)).code).toBe(200);
    });

    it("deletes the dependents of a deleted owner", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const { body: owner } = await context.client.post(path, configMap("owner"));
      const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: owner.metadata.uid }];
      await context.client.post(path, configMap("child", { ownerReferences }));
      await context.client.delete(`${path}/owner?propagationPolicy=Background`);
      await expectGone(`${path}/child`);
    });

    it("deletes dependents before their owner with Foreground, and keeps dependents with Orphan", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      for (const policy of ["Foreground", "Orphan"]) {
        const name = policy.toLowerCase();
        const { body: owner } = await context.client.post(path, configMap(name));
        const ownerReferences = [
          { apiVersion: "v1", kind: "ConfigMap", name, uid: owner.metadata.uid, blockOwnerDeletion: true },
        ];
        await context.client.post(path, configMap(`${name}-child`, { ownerReferences }));
        // The real garbage collector must have seen the dependent in a watch. Until then it does not wait for the dependent.
        await context.client.delete(`${path}/${name}`, { apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: policy });
        await expectGone(`${path}/${name}`);
      }
      await expectGone(`${path}/foreground-child`);
      const orphan = await context.client.get(`${path}/orphan-child`);
      expect(orphan.code).toBe(200);
      expect(orphan.body.metadata.ownerReferences).toBeUndefined();
    });

    it("empties a deleted namespace, and refuses new objects there meanwhile", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      await context.client.post(path, configMap("one", { finalizers: ["contract.test/hold"] }));
      await context.client.post(`/api/v1/namespaces/${namespace}/secrets`, secret("two"));
      const deleted = await context.client.delete(`/api/v1/namespaces/${namespace}`);
      expect(deleted).toMatchObject({ code: 200, body: { kind: "Namespace", status: { phase: "Terminating" } } });
      const refused = await context.client.post(path, configMap("late"));
      expect(refused).toMatchObject({
        code: 403,
        body: { reason: "Forbidden", details: { causes: [{ reason: "NamespaceTerminating" }] } },
      });
      await expectGone(`/api/v1/namespaces/${namespace}/secrets/two`);
      expect((await context.client.get(`/api/v1/namespaces/${namespace}`)).code).toBe(200);
      await eventually(async () => {
        expect((await context.client.get(`${path}/one`)).body.metadata.deletionTimestamp).toBeTruthy();
      });
      await context.client.patch(`${path}/one`, JSON_PATCH, [{ op: "remove", path: "/metadata/finalizers" }]);
      context.goneInTheEnd(`/api/v1/namespaces/${namespace}`);
    });

    it("deletes a collection by selector", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/secrets`;
      await context.client.post(path, secret("a", { labels: { app: "x" } }));
      await context.client.post(path, secret("b", { labels: { app: "x" } }));
      await context.client.post(path, secret("c", { labels: { app: "y" } }));
      expect((await context.client.delete(`${path}?labelSelector=app%3Dx`)).code).toBe(200);
      const { body } = await context.client.get(path);
      expect(body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual(["c"]);
    });

    it("does not delete namespaces as a collection", async () => {
      expect((await context.client.delete("/api/v1/namespaces?labelSelector=nobody%3Dhas")).code).toBe(405);
    });

    it("deletes a pod without a node at once, a pod on a node after its grace period, and an evicted pod", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/pods`;
      await context.client.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name: "default" },
      });
      await eventually(async () => {
        expect((await context.client.post(path, pod("free"))).code).toBe(201);
      });
      const bound = pod("bound");
      await context.client.post(path, { ...bound, spec: { ...bound.spec, nodeName: "no-such-node" } });
      expect((await context.client.delete(`${path}/free`)).body.kind).toBe("Pod");
      expect((await context.client.get(`${path}/free`)).code).toBe(404);
      const graceful = await context.client.delete(`${path}/bound`);
      expect(graceful).toMatchObject({ code: 200, body: { metadata: { deletionGracePeriodSeconds: 30 } } });
      expect((await context.client.get(`${path}/bound`)).code).toBe(200);
      expect((await context.client.delete(`${path}/bound?gracePeriodSeconds=0`)).code).toBe(200);
      expect((await context.client.get(`${path}/bound`)).code).toBe(404);
      await context.client.post(path, pod("evicted"));
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "evicted", namespace } };
      expect((await context.client.post(`${path}/evicted/eviction`, eviction)).code).toBe(201);
      expect((await context.client.get(`${path}/evicted`)).code).toBe(404);
    });
  });
}
