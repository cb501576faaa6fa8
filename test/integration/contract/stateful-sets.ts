// Contract: StatefulSets as objects. What their controller does is not a part of it.
import { describe, expect, it } from "vitest";
import { type Body, MERGE_PATCH } from "./client.ts";
import type { Context } from "./context.ts";

const LABELS = { app: "one" };

function statefulSet(spec: Body = {}): Body {
  const template = { metadata: { labels: LABELS }, spec: { containers: [{ name: "main", image: "example.invalid/none" }] } };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name: "one" },
    spec: { serviceName: "one", selector: { matchLabels: LABELS }, template, ...spec },
  };
}

export function describeStatefulSets(context: Context): void {
  const place = async () => `/apis/apps/v1/namespaces/${await context.namespace()}/statefulsets`;

  describe("StatefulSets", () => {
    it("are a kind of apps/v1", async () => {
      const { body } = await context.client.get("/apis/apps/v1");
      const found = (name: string) => body.resources.find((each: Body) => each.name === name);
      expect(found("statefulsets")).toMatchObject({ kind: "StatefulSet", namespaced: true, shortNames: ["sts"] });
      expect(found("statefulsets/status")).toMatchObject({ kind: "StatefulSet" });
    });

    it("get the defaults of their fields", async () => {
      const { code, body } = await context.client.post(await place(), statefulSet());
      expect(code).toBe(201);
      expect(body).toMatchObject({
        metadata: { generation: 1 },
        spec: {
          replicas: 1,
          podManagementPolicy: "OrderedReady",
          updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } },
          revisionHistoryLimit: 10,
        },
        status: { replicas: 0 },
      });
    });

    it("count the changes of their spec, and not those of their metadata", async () => {
      const path = await place();
      await context.client.post(path, statefulSet({ replicas: 0 }));
      const patch = (body: Body) => context.client.patch(`${path}/one`, MERGE_PATCH, body);
      expect((await patch({ metadata: { labels: { a: "b" } } })).body.metadata.generation).toBe(1);
      expect((await patch({ spec: { ordinals: { start: 3 } } })).body).toMatchObject({
        metadata: { generation: 2 },
        spec: { replicas: 0, ordinals: { start: 3 } },
      });
    });

    it.each([
      ["without a selector", { selector: undefined }, "spec.selector"],
      [
        "with a selector that does not match the labels of its pods",
        { selector: { matchLabels: { app: "two" } } },
        "spec.template.metadata.labels",
      ],
    ])("are refused %s", async (_what, spec, field) => {
      const { code, body } = await context.client.post(await place(), statefulSet(spec));
      expect(code).toBe(422);
      expect(body.details.causes.map((cause: Body) => cause.field)).toContain(field);
    });
  });
}
