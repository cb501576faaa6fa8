import { describe, expect, it } from "vitest";
import { type Template, withTemplate } from "./old-template.ts";

const TOKEN = { name: "kube-api-access-x", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true };
const template = (image: string, more: object = {}): Template => ({
  metadata: { labels: { app: "foo" }, annotations: { release: image } },
  spec: {
    containers: [{ name: "operator", image, env: [{ name: "A", value: image }], ...more }],
    terminationGracePeriodSeconds: 30,
  },
});
/** The pod as the StatefulSet's controller makes it and admission completes it. */
const podOf = ({ metadata, spec }: Template) => ({
  metadata: {
    name: "foo-0",
    labels: { ...metadata?.labels, "statefulset.kubernetes.io/pod-name": "foo-0" },
    annotations: metadata?.annotations,
  },
  spec: {
    ...spec,
    containers: ((spec?.containers ?? []) as object[]).map((each) => ({
      ...each,
      volumeMounts: [...((each as { volumeMounts?: object[] }).volumeMounts ?? []), TOKEN],
    })),
    hostname: "foo-0",
    volumes: [...((spec?.volumes as object[]) ?? []), { name: "data" }, { name: TOKEN.name }],
    tolerations: [{ key: "node.kubernetes.io/not-ready" }],
  },
});

describe("a pod with another template", () => {
  it("is the pod that the other template would have made", () => {
    const [from, to] = [template("v2"), template("v1")];
    expect(withTemplate(podOf(from), from, to)).toEqual(podOf(to));
  });
  it("has the other template's containers, volumes, mounts and variables, and loses those of its own", () => {
    const mounts = [
      { name: "cache", mountPath: "/cache" },
      { name: "cache", mountPath: "/cache2", subPath: "b" },
    ];
    const small = template("v1", { env: [{ name: "B", value: "1" }], volumeMounts: mounts.slice(0, 1) });
    const large = template("v2", { volumeMounts: mounts, args: ["--new"] });
    const old = { ...small, spec: { ...small.spec, volumes: [{ name: "cache" }], nodeSelector: { a: "1" } } };
    const extra = { ...large, spec: { ...large.spec, volumes: [{ name: "cache" }, { name: "big" }], priority: 5 } };
    expect(withTemplate(podOf(extra), extra, old)).toEqual(podOf(old));
    expect(withTemplate(podOf(old), old, extra)).toEqual(podOf(extra));
  });
  it("has the token in containers that only the other template has", () => {
    const to = {
      ...template("v1"),
      spec: { containers: [{ name: "before", image: "v1" }], initContainers: [{ name: "init", image: "v1" }] },
    };
    const merged = withTemplate(podOf(template("v2")), template("v2"), to);
    expect(merged.spec).toMatchObject({
      containers: [{ name: "before", image: "v1", volumeMounts: [TOKEN] }],
      initContainers: [{ name: "init", image: "v1", volumeMounts: [TOKEN] }],
    });
    expect(merged.spec.containers).toHaveLength(1);
  });
  it("keeps tolerations that admission has added, also if the templates have some", () => {
    const tolerating = (each: Template, key: string) => ({ ...each, spec: { ...each.spec, tolerations: [{ key }] } });
    const [from, to] = [tolerating(template("v2"), "own-0"), tolerating(template("v1"), "own-1")];
    const pod = podOf(from);
    const live = { ...pod, spec: { ...pod.spec, tolerations: [{ key: "own-0" }, { key: "added" }] } };
    expect(withTemplate(live, from, to).spec.tolerations).toEqual([{ key: "own-1" }, { key: "added" }]);
  });
  it("is unchanged if the templates are equal", () => {
    const pod = podOf(template("v1"));
    expect(withTemplate(pod, template("v1"), template("v1"))).toEqual(pod);
  });
});
