import { describe, expect, it } from "vitest";
import { ANNOTATIONS, type AnnotationName } from "./annotations.ts";
import { configKeyWarnings, KEYS_OF_PODS, podKeyWarnings, VARIABLES_OF_PODS } from "./kusionstack-keys.ts";

const PREFIX = "ctrlmesh.kusionstack.io/";

describe("a key of KusionStack's mesh on a pod", () => {
  it("gets a warning that names what to use instead, as a label and as an annotation", () => {
    expect(podKeyWarnings({ labels: { [`${PREFIX}enable-iptables`]: "true" } }, [])).toEqual([
      `label ${PREFIX}enable-iptables has no effect here: use the annotation ctrlmesh.kruise.io/intercept: iptables`,
    ]);
    expect(podKeyWarnings({ annotations: { [`${PREFIX}log-path`]: "/logs" } }, [])).toEqual([
      `annotation ${PREFIX}log-path has no effect here: mount a volume in the template; the proxy logs to its standard output`,
    ]);
  });

  it("gets none for a label that has an effect, or that is only not needed", () => {
    const labels = { [`${PREFIX}enable-proxy`]: "true", [`${PREFIX}watching`]: "true", app: "shop", "log-path": "x" };
    expect(podKeyWarnings({ labels }, [])).toEqual([]);
    expect(podKeyWarnings({}, [])).toEqual([]);
  });

  it("gets one for a label that declines the proxy, since the selector decides", () => {
    expect(podKeyWarnings({ labels: { [`${PREFIX}inject-proxy`]: "false" } }, [])).toEqual([
      `label ${PREFIX}inject-proxy has no effect here unless it is true: the selector decides who gets the proxy`,
    ]);
  });

  it("gets one for a variable of a container that is true", () => {
    const container = (value: string) => ({
      name: "operator",
      env: [{ name: "ENABLE_IPTABLE_PROXY", value }, { name: "toString" }],
    });
    expect(podKeyWarnings({}, [{ name: "x" }, container("true")])).toEqual([
      "variable ENABLE_IPTABLE_PROXY of container operator has no effect here: use the annotation ctrlmesh.kruise.io/intercept: iptables",
    ]);
    expect(podKeyWarnings({}, [container("false")])).toEqual([]);
  });
});

it("what to use instead exists", () => {
  const texts = Object.values({ ...KEYS_OF_PODS, ...VARIABLES_OF_PODS });
  const named = texts.flatMap((text) => [...text.matchAll(/ctrlmesh\.kruise\.io\/([a-z-]+)/g)].map(([, name]) => name));
  expect(new Set(named)).toEqual(new Set(["intercept", "proxy-cpu", "proxy-env"]));
  const names: AnnotationName[] = ["intercept", "proxy-cpu", "proxy-memory", "proxy-cpu-limit", "proxy-memory-limit"];
  for (const name of names) expect(ANNOTATIONS).toHaveProperty([name]);
});

it("a ShardingConfig with the label ignore-validate or with KusionStack's finalizer gets a warning", () => {
  expect(configKeyWarnings({ labels: { [`${PREFIX}ignore-validate`]: "" } })).toEqual([
    `label ${PREFIX}ignore-validate has no effect here: every ShardingConfig is checked`,
  ]);
  const finalizers = ["ctrlmesh.kruise.io/routes", `finalizer.${PREFIX}protected`];
  expect(configKeyWarnings({ finalizers })).toEqual([
    `finalizer finalizer.${PREFIX}protected: nobody removes it here, so remove it before you delete the object`,
  ]);
  expect(configKeyWarnings({ finalizers: [] })).toEqual([]);
});
