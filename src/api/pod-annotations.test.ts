import { describe, expect, it } from "vitest";
import { settingNames } from "../base/settings.ts";
import { proxyCommandLine } from "../proxy/config.ts";
import { ANNOTATIONS } from "./annotations.ts";
import { annotationsInForce, podAnnotationMisspellings, podAnnotationProblems, proxyAnnotations } from "./pod-annotations.ts";
import { formatProblem } from "./problems.ts";

const ours = (annotations: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(annotations).map(([name, value]) => [`ctrlmesh.kruise.io/${name}`, value]));
const problems = (annotations: Readonly<Record<string, string>>, ...reserved: readonly string[]) =>
  podAnnotationProblems(ours(annotations), (name) => reserved.includes(name)).map(formatProblem);

describe("the annotations of a pod", () => {
  it("set no option if there are none", () => {
    expect(proxyAnnotations(undefined)).toEqual({ env: [{ name: "CTRLMESH_LOG_LEVEL", value: "info" }], fields: {} });
    expect(podAnnotationProblems()).toEqual([]);
  });
  it("set the proxy's variables in the order of their names", () => {
    expect(proxyAnnotations(ours({ "proxy-env.B": "2", "proxy-env.A": "" })).env.slice(1)).toEqual([
      { name: "A", value: "" },
      { name: "B", value: "2" },
    ]);
  });
  it("are refused by name, with the allowed values", () => {
    expect(problems({ intercept: "iptable", "proxy-memory-limit": "64Mi" })).toEqual([
      'metadata.annotations[ctrlmesh.kruise.io/intercept]: "iptable": must be one of "env", "kubeconfig", "iptables"; did you mean "iptables"?',
      'metadata.annotations[ctrlmesh.kruise.io/proxy-memory-limit]: "64Mi": must be at least 128Mi',
    ]);
  });
  it("may not set the variables that the mesh sets for the proxy's identity", () => {
    expect(problems({ "proxy-env.CTRLMESH_IDENTITY": "none", "proxy-env.OTHER": "x" }, "CTRLMESH_IDENTITY")).toEqual([
      'metadata.annotations[ctrlmesh.kruise.io/proxy-env.CTRLMESH_IDENTITY]: "none": must not be set: the mesh sets it for the proxy\'s identity and configuration',
    ]);
  });
  it("may not request more than their limit", () => {
    expect(
      problems({ "proxy-memory": "2Gi", "proxy-memory-limit": "1Gi", "proxy-cpu": "1", "proxy-cpu-limit": "1000m" }),
    ).toEqual([
      'metadata.annotations[ctrlmesh.kruise.io/proxy-memory]: "2Gi": must be at most the 1Gi of ctrlmesh.kruise.io/proxy-memory-limit',
    ]);
  });
  it("list ranges of private addresses, which need the egress proxy", () => {
    const ranges = (text: string, more: Readonly<Record<string, string>> = { egress: "true" }) =>
      problems({ ...more, "egress-private-addresses": text });
    expect(ranges("10.0.0.0/8, fd00::/8")).toEqual([]);
    const wrong = [
      ranges("10.0.0.0/8,10.1"),
      ranges("10.0.0.0/33"),
      ranges("::/129"),
      ranges(" , "),
      ranges("10.0.0.0/8", {}),
      ranges("10.0.0.0/8", { egress: "false" }),
    ];
    expect(wrong.map(([problem = ""]) => problem.replace(/^.*?: ".*?": /, ""))).toEqual([
      '"10.1" is not a range of addresses such as 10.0.0.0/8',
      '"10.0.0.0/33" is not a range of addresses such as 10.0.0.0/8',
      '"::/129" is not a range of addresses such as 10.0.0.0/8',
      "must be ranges of addresses such as 10.0.0.0/8, divided by commas",
      'has no effect without ctrlmesh.kruise.io/egress: "true"',
      'has no effect without ctrlmesh.kruise.io/egress: "true"',
    ]);
    expect(proxyAnnotations(ours({ egress: "true", "egress-private-addresses": " 10.0.0.0/8 , ::1/128" })).env).toContainEqual({
      name: "CTRLMESH_EGRESS_PRIVATE_ADDRESSES",
      value: "10.0.0.0/8,::1/128",
    });
  });
  it("of other programs, and those that the mesh writes itself, are ignored", () => {
    const foreign = { "ctrlmesh.kruise.io/something-else-entirely": "x", "example.com/intercept": "y", toString: "z" };
    expect(podAnnotationProblems(foreign)).toEqual([]);
    expect(podAnnotationMisspellings(foreign)).toEqual([]);
  });
});

describe("the annotations in force for a pod", () => {
  it("are its own before the app's, and these before the defaults", () => {
    const defaults = ours({ intercept: "iptables", "host-aliases": "true", "proxy-log-level": "warn" });
    const app = { ...ours({ intercept: "kubeconfig", "strip-managed-fields": "true" }), other: "x" };
    expect(annotationsInForce(ours({ "proxy-log-level": "debug" }), app, defaults)).toEqual(
      ours({ intercept: "kubeconfig", "host-aliases": "true", "proxy-log-level": "debug" }),
    );
    expect(annotationsInForce(ours({ intercept: "env" }), app, defaults)).toMatchObject(ours({ intercept: "env" }));
    expect(annotationsInForce(undefined, undefined, undefined)).toEqual({});
  });
  it("have no default request of a resource whose limit the pod sets", () => {
    const defaults = ours({ "proxy-memory": "1Gi", "proxy-memory-limit": "2Gi", "proxy-cpu": "200m" });
    expect(annotationsInForce(ours({ "proxy-memory-limit": "256Mi" }), {}, defaults)).toEqual(
      ours({ "proxy-memory-limit": "256Mi", "proxy-cpu": "200m" }),
    );
  });
});

describe("the table of annotations", () => {
  it("passes values on only in variables that the proxy's settings have", () => {
    const settings = Object.keys(proxyCommandLine.settings).map((name) => settingNames("CTRLMESH", name).variable);
    const variables = Object.values(ANNOTATIONS).flatMap(({ env }) => env ?? []);
    expect(settings).toEqual(expect.arrayContaining(variables));
  });
  it("has values by default that are allowed", () => {
    const wrong = Object.values(ANNOTATIONS).flatMap(({ fallback, whyWrong }) => (fallback && whyWrong(fallback)) ?? []);
    expect(wrong).toEqual([]);
  });
  it("has a request and a limit of each resource", () => {
    const rows = Object.values(ANNOTATIONS);
    expect(new Set(rows.flatMap(({ requests }) => requests ?? []))).toEqual(new Set(rows.flatMap(({ limits }) => limits ?? [])));
  });
});
