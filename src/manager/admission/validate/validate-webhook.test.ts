import { describe, expect, it } from "vitest";
import { CALLER } from "../../../../test/support/review-caller.ts";
import { sampleShardingConfig } from "../../../../test/support/sharding-config.ts";
import { appOf, appsIn } from "../../../../test/support/source-apps.ts";
import { threadCpuMs } from "../../../../test/support/thread-cpu.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import { createStore } from "../../../runtime/store.ts";
import { createShardingSource } from "../../sharding/sharding-source.ts";
import { createVirtualAppSource } from "../../virtual-app/virtual-app-source.ts";
import { type AdmissionRequest, encodeReview } from "../server/admission-review.ts";
import { checkedSources, createValidateWebhook } from "./validate-webhook.ts";

describe("the validating webhook", () => {
  const apps = createStore<VirtualApp>(() => undefined);
  const review = createValidateWebhook(checkedSources({ sources: [createVirtualAppSource()], apps: appsIn(apps) }));
  const resource = { group: "ctrlmesh.kruise.io", version: "v1alpha1", resource: "virtualapps" };
  const ask = (more: Partial<AdmissionRequest>) =>
    review({ uid: "u", resource, operation: "CREATE", namespace: "ops", name: "shop", ...more }, CALLER);
  const bad = sampleVirtualApp({ subsets: [{ name: "v1", labels: { a: "b" }, routeRules: ["canary-ue", "x"] }] });

  it("refuses with every problem in the message, and each as a cause", async () => {
    const answer = await ask({ object: bad });
    expect(answer).toMatchObject({ allowed: false, reason: "Invalid" });
    if (answer.allowed) return;
    expect(answer.message).toMatch(
      /^VirtualApp shop has 2 problems: spec\.subsets\[0\]\.routeRules\[0\]: "canary-ue": no such subRule/,
    );
    expect(answer.details?.causes?.map(({ field }) => field)).toEqual([
      "spec.subsets[0].routeRules[0]",
      "spec.subsets[0].routeRules[1]",
    ]);
  });

  it("answers in few bytes whatever the names of the unknown fields are", async () => {
    const fields = Object.fromEntries(Array.from({ length: 100 }, (_, i) => ["x".repeat(60_000) + i, i]));
    const answer = await ask({ object: { ...sampleVirtualApp(), ...fields } });
    expect(JSON.stringify(encodeReview("u", answer)).length).toBeLessThan(150_000);
  });

  it("refuses an object without metadata or with too many labels, soon", async () => {
    expect(await ask({ object: { ...sampleVirtualApp(), metadata: null } })).toMatchObject({ allowed: false, reason: "Invalid" });
    const matchLabels = Object.fromEntries(Array.from({ length: 45_000 }, (_, i) => [`!${i}`, "x"]));
    const object = sampleVirtualApp({ selector: { matchLabels } });
    expect(await ask({ object })).toMatchObject({ details: { causes: [{ message: "must have at most 32 entries" }] } });
  });

  it("allows an edit of an invalid object, and reads what it needs before the stores have synced", async () => {
    expect(await ask({ operation: "UPDATE", object: bad, oldObject: bad })).toMatchObject({ allowed: true });
    expect(await ask({ object: sampleVirtualApp() })).toEqual({ allowed: true, warnings: [] });
  });

  it("does not compare the object with itself", async () => {
    const same = { ...sampleVirtualApp(), metadata: { namespace: "ops", name: "shop" } } as unknown as VirtualApp;
    apps.replace([same, { ...same, metadata: { namespace: "ops", name: "rival" } }]);
    expect(await ask({ object: sampleVirtualApp() })).toMatchObject({ warnings: [expect.stringContaining("VirtualApp rival")] });
  });

  it("refuses an object with the name of an app of another kind", async () => {
    const other = appOf({ ...sampleVirtualApp(), metadata: { namespace: "ops", name: "shop" } });
    const reviewBeside = (kind: string) =>
      createValidateWebhook(
        checkedSources({
          sources: [createVirtualAppSource()],
          apps: { list: () => [{ ...other, ref: { ...other.ref, kind } }] },
        }),
      );
    const create = { uid: "u", resource, operation: "CREATE", namespace: "ops", name: "shop", object: sampleVirtualApp() };
    expect(await reviewBeside("ShardingConfig")(create as AdmissionRequest, CALLER)).toMatchObject({
      allowed: false,
      message: expect.stringContaining("metadata.name: is the name of a ShardingConfig of this namespace"),
    });
    expect(await reviewBeside("VirtualApp")(create as AdmissionRequest, CALLER)).toMatchObject({ allowed: true });
    const edit = { ...create, operation: "UPDATE", oldObject: create.object };
    expect(await reviewBeside("ShardingConfig")(edit as AdmissionRequest, CALLER)).toMatchObject({ allowed: true });
  });

  it("says which name a family would have if it is not that of the object", async () => {
    const other = appOf({ ...sampleVirtualApp(), metadata: { namespace: "ops", name: "shop-lock" } });
    const beside = createValidateWebhook(checkedSources({ sources: [createShardingSource()], apps: { list: () => [other] } }));
    const of = { group: "ctrlmesh.kusionstack.io", version: "v1alpha1", resource: "shardingconfigs" };
    const object = sampleShardingConfig();
    const create = { uid: "u", resource: of, operation: "CREATE", namespace: "ops", name: "shop-east", object } as const;
    expect(await beside(create as AdmissionRequest, CALLER)).toMatchObject({
      allowed: false,
      message: expect.stringContaining('spec: names its family "shop-lock", as a VirtualApp of this namespace is named'),
    });
  });

  it.each<[string, object]>([
    [
      "names of 100,000 letters",
      { route: { subRules: [{ name: "x".repeat(1e5), match: [] }] }, subsets: [{ routeRules: ["y".repeat(1e5)] }] },
    ],
    [
      "4,000 rules of which none is known",
      {
        route: { subRules: Array.from({ length: 4_000 }, (_, index) => ({ name: `some-sub-rule-${index}`, match: [] })) },
        subsets: [{ routeRules: Array.from({ length: 4_000 }, (_, index) => `some-subb-rule-${index}`) }],
      },
    ],
  ])("is not held up by %s, which anybody may send", async (_, spec) => {
    const startedMs = threadCpuMs();
    expect(await ask({ object: sampleVirtualApp(spec as Readonly<Record<string, unknown>>) })).toMatchObject({ allowed: false });
    expect(threadCpuMs() - startedMs).toBeLessThan(2_000);
  });

  it("allows what only another replica checks, so that an upgrade or a changed option refuses no edit", async () => {
    expect(await ask({ operation: "DELETE", object: null })).toEqual({ allowed: true });
    expect(await ask({ resource: { ...resource, resource: "newkinds" }, object: {} })).toEqual({ allowed: true });
    const namespaces = { group: "", version: "v1", resource: "namespaces" }; // another replica warns of moves, and this one does not
    expect(await ask({ resource: namespaces, operation: "UPDATE", object: {}, oldObject: {} })).toEqual({ allowed: true });
  });

  it("refuses a review without an object", async () => {
    expect(await ask({ object: null })).toMatchObject({ allowed: false, reason: "BadRequest" });
  });
});
