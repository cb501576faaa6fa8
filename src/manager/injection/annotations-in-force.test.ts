import { expect, test } from "vitest";
import { annotationsInForce } from "./annotations-in-force.ts";

const ours = (values: Record<string, string>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`ctrlmesh.kruise.io/${name}`, value]));

test("the pod's own annotations come before the app's, and these before the defaults", () => {
  const defaults = ours({ intercept: "iptables", "host-aliases": "true", "proxy-log-level": "warn" });
  const app = { ...ours({ intercept: "kubeconfig", "strip-managed-fields": "true" }), other: "x" };
  expect(annotationsInForce(ours({ "proxy-log-level": "debug" }), app, defaults)).toEqual(
    ours({ intercept: "kubeconfig", "host-aliases": "true", "proxy-log-level": "debug" }),
  );
  expect(annotationsInForce(ours({ intercept: "env" }), app, defaults)).toMatchObject(ours({ intercept: "env" }));
  expect(annotationsInForce(undefined, undefined, undefined)).toEqual({});
});

test("a pod that sets a limit gets no default request of the same resource", () => {
  const defaults = ours({ "proxy-memory": "1Gi", "proxy-memory-limit": "2Gi", "proxy-cpu": "200m" });
  expect(annotationsInForce(ours({ "proxy-memory-limit": "256Mi" }), {}, defaults)).toEqual(
    ours({ "proxy-memory-limit": "256Mi", "proxy-cpu": "200m" }),
  );
});
