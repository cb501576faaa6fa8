import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../kube/types.ts";
import { serverSideApplierOf } from "./last-applier.ts";

const applied = (manager: string, time: string, more: object = {}) => ({
  manager,
  operation: "Apply",
  time,
  fieldsV1: {},
  ...more,
});
const clientSide = (time: string) => ({
  manager: "kubectl-client-side-apply",
  operation: "Update",
  time,
  fieldsV1: { "f:metadata": { "f:annotations": { "f:kubectl.kubernetes.io/last-applied-configuration": {} } } },
});
const edited = { manager: "ctrlmesh", operation: "Update", time: "2026-09-01T00:00:00Z", fieldsV1: { "f:spec": {} } };
const [MAY, JUNE] = ["2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z"];
const applierOf = (managedFields: unknown) => serverSideApplierOf({ metadata: { managedFields } } as KubeObject);

describe("the server-side applier of an object", () => {
  it.each<[string, unknown, string | undefined]>([
    ["the last one of two", [applied("flux", MAY), applied("argo", JUNE), edited], "argo"],
    ["one after a client-side apply", [clientSide(MAY), applied("argo", JUNE)], "argo"],
    ["one in the same second as a client-side apply", [clientSide(MAY), applied("argo", MAY)], "argo"],
    ["none before a client-side apply", [applied("argo", MAY), clientSide(JUNE)], undefined],
    ["none that has applied the status only", [applied("other", JUNE, { subresource: "status" })], undefined],
    ["none of an object that was only edited", [edited], undefined],
    ["none of an object without managedFields", undefined, undefined],
    ["none of managedFields of another form", [{ manager: 5 }], undefined],
  ])("is %s", (_, managedFields, manager) => {
    expect(applierOf(managedFields)).toBe(manager);
  });
});
