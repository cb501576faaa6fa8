import { describe, expect, it } from "vitest";
import { podAnnotationProblems, podAnnotationSlips, podOptions } from "./pod-annotations.ts";
import { formatProblem } from "./problems.ts";

const ours = (annotations: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(annotations).map(([name, value]) => [`ctrlmesh.kruise.io/${name}`, value]));
const problems = (annotations: Readonly<Record<string, string>>, ...reserved: readonly string[]) =>
  podAnnotationProblems(ours(annotations), (name) => reserved.includes(name)).map(formatProblem);

describe("the annotations of a pod", () => {
  it("set no option if there are none", () => {
    expect(podOptions(undefined)).toMatchObject({ inject: true, intercept: undefined, hostAliases: undefined, env: [] });
    expect(podAnnotationProblems()).toEqual([]);
  });
  it("set the proxy's variables in the order of their names", () => {
    expect(podOptions(ours({ "proxy-env.B": "2", "proxy-env.A": "" })).env).toEqual([
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
    expect(podOptions(ours({ egress: "true", "egress-private-addresses": " 10.0.0.0/8 , ::1/128" }))).toMatchObject({
      egress: true,
      egressPrivateAddresses: "10.0.0.0/8,::1/128",
    });
  });
  it("of other programs, and those that the mesh writes itself, are ignored", () => {
    const foreign = { "ctrlmesh.kruise.io/something-else-entirely": "x", "example.com/intercept": "y", toString: "z" };
    expect(podAnnotationProblems(foreign)).toEqual([]);
    expect(podAnnotationSlips(foreign)).toEqual([]);
  });
});
