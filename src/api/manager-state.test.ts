import { describe, expect, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import type { KubeObject } from "../kube/types.ts";
import { type ManagerState, managerStateKind } from "./manager-state.ts";
import { validate } from "./problems.ts";

const head = { apiVersion: "ctrlmesh.kruise.io/v1alpha1", kind: "ManagerState", metadata: { name: "ctrlmesh-manager" } };

describe("ManagerState", () => {
  it("has the type that the schema infers, readonly, and is a Kubernetes object", () => {
    expectTypeOf<z.output<typeof managerStateKind.schema>>().toExtend<ManagerState>();
    expectTypeOf<ManagerState>().toExtend<KubeObject>();
  });

  it("accepts the status that the manager writes", () => {
    const status = {
      namespace: "ctrlmesh-system",
      endpoints: [{ name: "ctrlmesh-manager-0", podIP: "10.0.0.1", leader: true }],
      ports: { grpcLeaderElectionPort: 5447, grpcNonLeaderElectionPort: 5447 },
    };
    expect(validate(managerStateKind.schema, { ...head, status })).toEqual({ ok: true, value: { ...head, status } });
  });

  it("reads a status of another shape as absent", () => {
    expect(validate(managerStateKind.schema, { ...head, status: { endpoints: "old" } })).toMatchObject({
      ok: true,
      value: { status: undefined },
    });
  });
});
