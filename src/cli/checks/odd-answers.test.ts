// `ctrlmesh check` with answers and objects that are not as they should be: what cannot be read is no "ok".
import { describe, expect, it } from "vitest";
import { condition, type FakeObject } from "../../../test/support/cli.ts";
import {
  ADMISSION,
  appWith,
  caBundle,
  cliOfMesh,
  KRUISE,
  lease,
  object,
  policyWith,
  READY,
  webhooks,
} from "../../../test/support/cli-of-mesh.ts";
import { MeshError } from "../../base/errors.ts";
import { EXIT } from "../frame/exit.ts";

type Parts = Readonly<Record<string, readonly FakeObject[]>>;

async function check(parts: Parts, ...flags: string[]) {
  const { code, stdout } = await cliOfMesh(parts).run("check", "-o", "json", ...flags);
  return { code, findings: JSON.parse(stdout).findings as { check: string; severity: string; message: string; next?: string }[] };
}

const injection = (entries: unknown) =>
  object("MutatingWebhookConfiguration", ADMISSION, "ctrlmesh-injection", { webhooks: entries });

describe("check", () => {
  it("ends with 1 for an app that is not there", async () => {
    expect(await cliOfMesh().run("check", "--app", "shpo")).toMatchObject({
      code: EXIT.failed,
      stderr: expect.stringContaining("there is no app shpo in namespace ops"),
    });
  });

  it("ends with 1 for a user whom the API server does not know, instead of a warning for each check", async () => {
    const cli = cliOfMesh();
    cli.answers.get = () => {
      throw new MeshError("NOT_LOGGED_IN", "the API server does not accept the user's credentials");
    };
    for (const flags of [[], ["--pre"]]) {
      expect(await cli.run("check", ...flags)).toEqual({
        code: EXIT.failed,
        stdout: "",
        stderr: "ctrlmesh: the API server does not accept the user's credentials\n",
      });
    }
  });

  it("looks at the rest if the kinds cannot be looked at", async () => {
    const cli = cliOfMesh({ state: [] });
    const read = (path: string) => {
      throw new MeshError("COMMAND_FAILED", `User "u" cannot get path "${path}"`);
    };
    cli.answers.get = read as never;
    const { code, stdout } = await cli.run("check");
    expect(stdout).toContain('warning  kinds: not checked: User "u" cannot get path');
    expect(stdout).toContain("error    leader: no manager has reported");
    expect(code).toBe(EXIT.findings);
  });

  it.each([
    ["has no conditions", { conditions: [] }],
    ["has conditions of another version", { conditions: { Ready: "True" } }],
    ["does not know whether it is ready", { conditions: [condition("Ready", "Unknown", "Waiting", "for pods")] }],
  ])("finds an app that %s", async (_, status) => {
    const app = appWith(READY, { status }) as unknown as FakeObject;
    const { findings } = await check({ apps: [app] });
    expect(findings.at(-1)).toMatchObject({ check: "apps", message: expect.stringContaining("not known whether it is ready") });
  });

  it("names an app whose status cannot be read whole, and the fields", async () => {
    const { findings } = await check({ apps: [appWith(READY, { status: { conditions: READY, handover: 7 } })] });
    expect(findings).toMatchObject([{ check: "apps", severity: "warning", message: expect.stringContaining("handover") }]);
  });

  it.each<[string, unknown]>([
    ["no caBundle", [...webhooks(), { name: "b", clientConfig: {} }]],
    ["no clientConfig", [...webhooks(), { name: "b" }]],
    ["a caBundle that is a number", [...webhooks(), { name: "b", clientConfig: { caBundle: 7 } }]],
    ["a caBundle that ends soon", [...webhooks(), { name: "b", clientConfig: { caBundle: caBundle(2) } }]],
  ])("finds one webhook of several that has %s", async (_, entries) => {
    const { code, findings } = await check({ injection: [injection(entries)] });
    expect(findings).toMatchObject([{ check: "webhook-ca", severity: "error" }]);
    expect(code).toBe(EXIT.findings);
  });

  it.each<[string, string, Parts]>([
    [
      "endpoints are null",
      "replicas",
      { state: [object("ManagerState", KRUISE, "ctrlmesh-manager", { status: { endpoints: null } })] },
    ],
    ["a policy has conditions that are null", "policies", { policies: [policyWith("TrafficPolicy", { conditions: null })] }],
    ["a policy has conditions that are a text", "policies", { policies: [policyWith("TrafficPolicy", { conditions: "x" })] }],
    ["webhooks are a text", "webhooks", { injection: [injection("x")] }],
  ])("has a message for people if %s", async (_, name, parts) => {
    const { findings } = await check(parts);
    expect(findings.map((finding) => finding.check)).toContain(name);
    for (const { message } of findings)
      expect(message).not.toMatch(/is not a function|Cannot read|not iterable|\[object|undefined/);
  });

  it("finds what is wrong with one policy though another one cannot be read", async () => {
    const odd = { ...policyWith("TrafficPolicy", { conditions: null }), metadata: { namespace: "evil", name: "odd" } };
    const refused = policyWith("TrafficPolicy", { conditions: [condition("Accepted", "False", "Invalid", "limits")] });
    const { findings } = await check({ policies: [odd as unknown as FakeObject, refused] });
    expect(findings).toMatchObject(expect.arrayContaining([expect.objectContaining({ check: "policies", severity: "error" })]));
  });

  it("finds a Lease that was renewed in the future", async () => {
    const { findings } = await check({ lease: [lease("9999-01-01T00:00:00Z")] });
    expect(findings).toMatchObject([{ check: "leader", message: expect.stringContaining("in the future") }]);
  });

  it("has next commands in which a name is one word", async () => {
    const family = { status: { family: "x; rm -rf ~", conditions: [condition("Ready", "False", "X")] }, spec: { paused: true } };
    const config = object("ShardingConfig", "ctrlmesh.kusionstack.io/v1alpha1", "shard-a", family, "ops");
    const { findings } = await check({ apps: [config] });
    expect(findings.map(({ next }) => next)).toEqual([
      "ctrlmesh status 'x; rm -rf ~' -n ops",
      "ctrlmesh resume 'x; rm -rf ~' -n ops",
    ]);
  });
});

describe("check --pre", () => {
  it.each<[string, unknown]>([
    ["no version", {}],
    ["null", null],
    ["a text", "<html>"],
    ["a list", []],
    ["a version without digits", { major: "v", minor: "" }],
  ])("has no ok for an API server that answers %s", async (_, answer) => {
    const cli = cliOfMesh();
    cli.answers.set("/version", answer);
    const { stdout } = await cli.run("check", "--pre");
    expect(stdout).toMatch(/^(warning|error {2}) {2}kubernetes: .*the answer is none of an API server of Kubernetes/);
  });
});
