// The environment and command line of a container follow the kubelet's documentation.
import { expect, it } from "vitest";
import { commandLine, containerEnv, type EnvSources, expand } from "./container-env.ts";
import type { Container, NodePod } from "./pod-types.ts";

const image = { entrypoint: ["/run"], cmd: ["--default"], env: { FROM_IMAGE: "1", LEVEL: "info" } };
const sources: EnvSources = {
  addresses: { podIP: "10.200.1.1", hostIP: "10.200.0.1", nodeName: "node-1" },
  apiService: { host: "10.96.0.1", port: 443 },
  configMap: (name) => (name === "settings" ? { metadata: { name }, data: { LEVEL: "debug", OTHER: "x" } } : undefined),
  secret: (name) =>
    name === "keys" ? { metadata: { name }, data: { key: Buffer.from("s3cret").toString("base64") } } : undefined,
};
const pod: NodePod = { metadata: { name: "p", namespace: "n", uid: "u", labels: { a: "b" } }, spec: { containers: [] } };
const envOf = (container: Partial<Container>) => containerEnv(pod, { name: "main", image: "i", ...container }, image, sources);

it("prefers env to envFrom to the image's variables and has the API server's Service", () => {
  const env = envOf({ envFrom: [{ configMapRef: { name: "settings" }, prefix: "" }], env: [{ name: "OTHER", value: "y" }] });
  expect(env).toMatchObject({ FROM_IMAGE: "1", LEVEL: "debug", OTHER: "y", KUBERNETES_SERVICE_HOST: "10.96.0.1", HOSTNAME: "p" });
});

it("takes values from fields, resources, ConfigMaps and Secrets", () => {
  const env = envOf({
    resources: { limits: { memory: "32Mi" } },
    env: [
      { name: "UID", valueFrom: { fieldRef: { fieldPath: "metadata.uid" } } },
      { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
      { name: "LABEL", valueFrom: { fieldRef: { fieldPath: "metadata.labels['a']" } } },
      { name: "MIB", valueFrom: { resourceFieldRef: { resource: "limits.memory", divisor: "1Mi" } } },
      { name: "KEY", valueFrom: { secretKeyRef: { name: "keys", key: "key" } } },
      { name: "NONE", valueFrom: { configMapKeyRef: { name: "missing", key: "k", optional: true } } },
    ],
  });
  expect(env).toMatchObject({ UID: "u", IP: "10.200.1.1", LABEL: "b", MIB: "32", KEY: "s3cret" });
  expect(env).not.toHaveProperty("NONE");
});

it("fails with the kubelet's message for a missing object", () => {
  const configMapKeyRef = { name: "missing", key: "k" };
  expect(() => envOf({ env: [{ name: "A", valueFrom: { configMapKeyRef } }] })).toThrow('configmap "missing" not found');
  const secretKeyRef = { name: "keys", key: "none" };
  expect(() => envOf({ env: [{ name: "A", valueFrom: { secretKeyRef } }] })).toThrow("couldn't find key none in secret keys");
});

it("expands earlier variables, keeps unknown ones, and unescapes", () => {
  expect(expand("$(A)/$(B)/$$(A)/$A", { A: "1" })).toBe("1/$(B)/$(A)/$A");
});

it("replaces the image's arguments together with its entrypoint", () => {
  const words = (container: Partial<Container>) => commandLine({ name: "main", image: "i", ...container }, image, { A: "1" });
  expect(words({})).toEqual(["/run", "--default"]);
  expect(words({ args: ["$(A)"] })).toEqual(["/run", "1"]);
  expect(words({ command: ["/own"] })).toEqual(["/own"]);
});
