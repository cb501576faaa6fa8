// Contract: discovery, version, health.
import { describe, expect, it } from "vitest";
import type { Body } from "./client.ts";
import { type Context, GROUP } from "./context.ts";

const AGGREGATED =
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

export function describeDiscovery(context: Context): void {
  describe("discovery", () => {
    it("lists the core version and the groups", async () => {
      const core = await context.client.get("/api");
      expect(core.body).toMatchObject({ kind: "APIVersions", versions: ["v1"] });
      const groups = await context.client.get("/apis");
      expect(groups.body.kind).toBe("APIGroupList");
      const names = groups.body.groups.map((group: Body) => group.name);
      expect(names).toEqual(
        expect.arrayContaining(["apiextensions.k8s.io", "coordination.k8s.io", "authentication.k8s.io", GROUP]),
      );
    });

    it("answers a client that prefers aggregated discovery in a format that this client accepts", async () => {
      const { code, headers, body } = await context.client.get("/apis", { accept: AGGREGATED });
      expect(code).toBe(200);
      const aggregated = String(headers["content-type"]).includes("apidiscovery.k8s.io");
      expect(body.kind).toBe(aggregated ? "APIGroupDiscoveryList" : "APIGroupList");
    });

    it.each([
      ["pods", "Pod", true],
      ["namespaces", "Namespace", false],
      ["configmaps", "ConfigMap", true],
      ["secrets", "Secret", true],
      ["services", "Service", true],
      ["endpoints", "Endpoints", true],
      ["events", "Event", true],
      ["nodes", "Node", false],
      ["serviceaccounts", "ServiceAccount", true],
    ])("describes core %s", async (name, kind, namespaced) => {
      const { body } = await context.client.get("/api/v1");
      expect(body).toMatchObject({ kind: "APIResourceList", groupVersion: "v1" });
      const resource = body.resources.find((item: Body) => item.name === name);
      expect(resource).toMatchObject({ kind, namespaced });
      const verbs = [
        "create",
        "delete",
        "get",
        "list",
        "patch",
        "update",
        "watch",
        ...(name === "namespaces" ? [] : ["deletecollection"]),
      ];
      expect([...resource.verbs].sort()).toEqual(verbs.sort());
    });

    it("lists subresources", async () => {
      const { body } = await context.client.get("/api/v1");
      const names = body.resources.map((item: Body) => item.name);
      expect(names).toEqual(
        expect.arrayContaining(["pods/status", "pods/eviction", "serviceaccounts/token", "namespaces/finalize"]),
      );
    });

    it("describes a group with its versions, the preferred version first", async () => {
      const { body } = await context.client.get(`/apis/${GROUP}`);
      expect(body).toMatchObject({
        kind: "APIGroup",
        name: GROUP,
        preferredVersion: { groupVersion: `${GROUP}/v1`, version: "v1" },
      });
      expect(body.versions.map((item: Body) => item.version)).toEqual(["v1", "v1beta1"]);
    });

    it("reports its version and its health", async () => {
      expect((await context.client.get("/version")).body).toMatchObject({
        major: "1",
        gitVersion: expect.stringMatching(/^v1\./),
      });
      for (const path of ["/healthz", "/readyz", "/livez"])
        expect(await context.client.get(path)).toMatchObject({ code: 200, body: "ok" });
    });

    it.each(["/nowhere", "/apis/nowhere.example/v1", "/apis/nowhere.example/v1/things", "/api/v1/things"])(
      "answers 404 for %s",
      async (path) => {
        expect((await context.client.get(path)).code).toBe(404);
      },
    );
  });
}
