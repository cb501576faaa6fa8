// Contract: lists, selectors, chunks, versions.
import { describe, expect, it } from "vitest";
import type { Body } from "./client.ts";
import { type Context, pod, secret, WIDGETS } from "./context.ts";

const names = (body: Body): string[] => body.items.map((item: Body) => item.metadata.name);

export function describeLists(context: Context): void {
  async function filled() {
    const namespace = await context.namespace();
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    for (const [name, app] of [
      ["b", "x"],
      ["a", "x"],
      ["c", "y"],
      ["d", ""],
    ] as const) {
      await context.client.post(path, secret(name, app === "" ? {} : { labels: { app } }));
    }
    return path;
  }

  describe("lists", () => {
    it("lists objects in the order of their names, with the version of the collection", async () => {
      const path = await filled();
      const { code, body } = await context.client.get(path);
      expect(code).toBe(200);
      expect(body).toMatchObject({ kind: "SecretList", apiVersion: "v1" });
      expect(names(body)).toEqual(["a", "b", "c", "d"]);
      const newest = Math.max(...body.items.map((item: Body) => Number(item.metadata.resourceVersion)));
      expect(Number(body.metadata.resourceVersion)).toBeGreaterThanOrEqual(newest);
    });

    it.each([
      ["app=x", ["a", "b"]],
      ["app==y", ["c"]],
      ["app!=x", ["c", "d"]],
      ["app", ["a", "b", "c"]],
      ["!app", ["d"]],
      ["app in (x,y)", ["a", "b", "c"]],
      ["app notin (x)", ["c", "d"]],
      ["app,app!=y", ["a", "b"]],
    ])("selects by label: %s", async (selector, expected) => {
      const path = await filled();
      expect(names((await context.client.get(`${path}?labelSelector=${encodeURIComponent(selector)}`)).body)).toEqual(expected);
    });

    it("selects by field, and refuses fields that the kind does not support", async () => {
      const path = await filled();
      expect(names((await context.client.get(`${path}?fieldSelector=metadata.name%3Da`)).body)).toEqual(["a"]);
      expect(names((await context.client.get(`${path}?fieldSelector=metadata.name!%3Da`)).body)).toEqual(["b", "c", "d"]);
      expect((await context.client.get(`${path}?fieldSelector=spec.foo%3Da`)).code).toBe(400);
      expect((await context.client.get(`${WIDGETS}/widgets?fieldSelector=spec.size%3D1`)).code).toBe(400);
      expect((await context.client.get(`${path}?labelSelector=%3D%3D`)).code).toBe(400);
    });

    it("selects one namespace in a list over all namespaces", async () => {
      const path = await filled();
      const namespace = path.split("/")[4] ?? "";
      const { body } = await context.client.get(`/api/v1/secrets?fieldSelector=metadata.namespace%3D${namespace}`);
      expect(names(body)).toEqual(["a", "b", "c", "d"]);
    });

    it("selects pods by node and phase", async () => {
      const namespace = await context.namespace();
      const path = `/api/v1/namespaces/${namespace}/pods`;
      await context.client.post(`/api/v1/namespaces/${namespace}/serviceaccounts`, {
        apiVersion: "v1",
        kind: "ServiceAccount",
        metadata: { name: "default" },
      });
      const bound = pod("bound");
      await expect
        .poll(async () => (await context.client.post(path, { ...bound, spec: { ...bound.spec, nodeName: "node-1" } })).code, {
          timeout: 20_000,
        })
        .toBe(201);
      await context.client.post(path, pod("free"));
      expect(names((await context.client.get(`${path}?fieldSelector=spec.nodeName%3Dnode-1`)).body)).toEqual(["bound"]);
      expect(names((await context.client.get(`${path}?fieldSelector=spec.nodeName%3D`)).body)).toEqual(["free"]);
      expect(names((await context.client.get(`${path}?fieldSelector=status.phase%3DPending`)).body)).toEqual(["bound", "free"]);
      await context.client.delete(`${path}/bound?gracePeriodSeconds=0`);
    });

    it("lists in chunks that all have the first chunk's version", async () => {
      const path = await filled();
      const first = await context.client.get(`${path}?limit=2`);
      expect(names(first.body)).toEqual(["a", "b"]);
      expect(first.body.metadata).toMatchObject({ continue: expect.any(String), remainingItemCount: 2 });
      await context.client.delete(`${path}/d`);
      await context.client.post(path, secret("cc"));
      const rest = await context.client.get(`${path}?limit=2&continue=${encodeURIComponent(first.body.metadata.continue)}`);
      expect(names(rest.body)).toEqual(["c", "d"]);
      expect(rest.body.metadata.continue ?? "").toBe("");
      expect(rest.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
    });

    it("refuses an invalid continue token", async () => {
      const path = await filled();
      expect((await context.client.get(`${path}?limit=2&continue=nonsense`)).code).toBe(400);
    });

    it("reads at an exact version", async () => {
      const path = await filled();
      const { body: before } = await context.client.get(path);
      await context.client.delete(`${path}/a`);
      const exact = await context.client.get(
        `${path}?resourceVersion=${before.metadata.resourceVersion}&resourceVersionMatch=Exact`,
      );
      expect(names(exact.body)).toEqual(["a", "b", "c", "d"]);
      expect(exact.body.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
      const newer = await context.client.get(
        `${path}?resourceVersion=${before.metadata.resourceVersion}&resourceVersionMatch=NotOlderThan`,
      );
      expect(newer.code).toBe(200);
      expect((await context.client.get(`${path}?resourceVersion=0`)).code).toBe(200);
    });

    it.each([
      "resourceVersionMatch=Exact",
      "resourceVersion=0&resourceVersionMatch=Exact",
      "resourceVersion=1&resourceVersionMatch=Sometimes",
      "sendInitialEvents=true",
    ])("refuses ?%s", async (query) => {
      const path = await filled();
      expect((await context.client.get(`${path}?${query}`)).code).toBe(422);
    });

    it("refuses a version that is not a number, and a version in the future", async () => {
      const path = await filled();
      expect((await context.client.get(`${path}?resourceVersion=abc`)).code).toBe(400);
      const future = await context.client.get(`${path}?resourceVersion=999999999&resourceVersionMatch=NotOlderThan`);
      expect(future).toMatchObject({
        code: 504,
        body: { reason: "Timeout", details: { causes: [{ reason: "ResourceVersionTooLarge" }] } },
      });
    });
  });
}
