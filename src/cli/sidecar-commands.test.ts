import { describe, expect, it } from "vitest";
import { type FakeObject, movingApp, startCli } from "../../test/support/cli.ts";
import { INJECTED_LABEL } from "../api/injected-pod.ts";
import { EXIT } from "./frame/exit.ts";

const SECRET = "s3cr3t-t0ken";
const pod = (name: string): FakeObject =>
  ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      namespace: "ops",
      name,
      labels: { [INJECTED_LABEL]: "shop" },
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": SECRET },
    },
    spec: {
      containers: [{ name: "operator", image: "op:1", env: [{ name: "TOKEN", value: SECRET }], args: [`--token=${SECRET}`] }],
    },
    status: { phase: "Running", containerStatuses: [{ name: "operator", restartCount: 0, state: { running: {} } }] },
  }) as unknown as FakeObject;
const request = (more: object) => ({
  method: "GET",
  code: 200,
  seconds: 0.004,
  decision: "forwarded",
  verb: "list",
  group: "",
  resource: "configmaps",
  namespace: "team-a",
  name: "",
  ...more,
});
const REFUSED = request({
  method: "DELETE",
  code: 403,
  decision: "refused",
  reason: "other-subset",
  verb: "delete",
  name: "web",
});

function cliWithPods(requests: object[] = [request({}), request({ seconds: 0.008 }), REFUSED]) {
  const cli = startCli([movingApp({ routeVersion: 17 }), pod("shop-0"), pod("shop-1")]);
  cli.sidecars.set("shop-0", {
    "/debug/requests": () => ({ requests }),
    "/debug/snapshot": () => ({
      version: 17,
      digest: "d",
      subset: "default",
      namespaces: { total: 3 },
      fenced: { total: 1 },
      retained: { total: 0 },
    }),
    "/debug/policies": () => ({ rules: { total: 0, first: [] } }),
    "/debug/plans": () => ({ plans: [] }),
  });
  return cli;
}

describe("tap", () => {
  it("shows each request with what the sidecar did, and names the pod that does not answer", async () => {
    const { code, stdout, stderr } = await cliWithPods().run("tap", "shop");
    expect(code).toBe(EXIT.ok);
    expect(stdout).toBe(`POD     CODE  TIME  DECISION              REQUEST
shop-0  200   4 ms  forwarded             list configmaps team-a
shop-0  200   8 ms  forwarded             list configmaps team-a
shop-0  403   4 ms  refused other-subset  delete configmaps team-a/web
`);
    expect(stderr).toContain("listening for 10 s\n");
    expect(stderr).toContain("pod shop-1: not asked: no port of pod shop-1 can be reached here\n");
  });

  it("leaves out what is not asked for", async () => {
    const { stdout } = await cliWithPods().run("tap", "shop", "--refused", "-o", "json");
    expect(JSON.parse(stdout).items).toEqual([{ ...REFUSED, pod: "shop-0" }]);
    expect((await cliWithPods().run("tap", "shop", "--verb", "watch")).stderr).toContain(
      "no such request has ended in this time",
    );
  });

  it.each(["0s", "61s", "soon"])("refuses --for %s", async (time) => {
    expect(await cliWithPods().run("tap", "shop", "--for", time)).toMatchObject({
      code: EXIT.usage,
      stderr: expect.stringContaining("--for"),
    });
  });

  it("refuses a verb that there is not", async () => {
    expect(await cliWithPods().run("tap", "shop", "--verb", "remove")).toMatchObject({
      code: EXIT.usage,
      stderr: expect.stringContaining('--verb: "remove" is none of: get, list'),
    });
  });

  it("fails if no sidecar answers", async () => {
    expect((await cliWithPods().run("tap", "shop", "--pod", "shop-1")).code).toBe(EXIT.failed);
    expect((await cliWithPods().run("tap", "shop", "--pod", "gone")).stderr).toContain(
      "no pod of these apps has a sidecar that runs",
    );
  });
});

it("top counts requests by verb and resource, with their median time", async () => {
  expect((await cliWithPods().run("top", "shop")).stdout).toBe(`REQUESTS  REFUSED  MEDIAN  PODS  REQUEST
2         0        8 ms    1     list configmaps
1         1        4 ms    1     delete configmaps
`);
});

it("proxies shows the routes of each sidecar beside the newest", async () => {
  const { code, stdout } = await cliWithPods().run("proxies", "shop");
  expect(code).toBe(EXIT.ok);
  expect(stdout).toBe(`the newest routes are 17
POD     SUBSET   ROUTE  IN ROUTE  FENCED  RETAINED
shop-0  default  17     3         1       0
shop-1  -        -      -         -       -         not asked: no port of pod shop-1 can be reached here
`);
});

it("events shows those of the app and its pods, the oldest first", async () => {
  const event = (kind: string, name: string, reason: string, lastTimestamp: string): FakeObject =>
    ({
      apiVersion: "v1",
      kind: "Event",
      metadata: { namespace: "ops", name: reason },
      involvedObject: { kind, name },
      type: "Normal",
      reason,
      message: "text",
      lastTimestamp,
    }) as unknown as FakeObject;
  const cli = startCli([
    movingApp(),
    pod("shop-0"),
    event("Pod", "shop-0", "Second", "2025-12-31T23:59:00Z"),
    event("VirtualApp", "shop", "First", "2025-12-31T23:00:00Z"),
    event("Pod", "other-0", "Foreign", "2025-12-31T23:59:30Z"),
  ]);
  expect((await cli.run("events", "shop")).stdout).toBe(`AGE  TYPE    REASON  OBJECT           MESSAGE
1h   Normal  First   VirtualApp shop  text
1m   Normal  Second  Pod shop-0       text
`);
});

it("recover gives the breaker's annotation a new text, and says how kubectl would", async () => {
  const cli = startCli([]);
  const { code, stderr } = await cli.run("recover", "cbk/guard");
  expect(code).toBe(EXIT.ok);
  expect(cli.patches).toMatchObject([
    {
      path: "/apis/ctrlmesh.kusionstack.io/v1alpha1/namespaces/ops/circuitbreakers/guard",
      patch: { metadata: { annotations: { "ctrlmesh.kusionstack.io/recover": "2026-01-01T00:00:00.000Z" } } },
    },
  ]);
  expect(stderr).toContain("kubectl patch circuitbreakers.ctrlmesh.kusionstack.io guard -n ops --type=merge");
});

describe("bug-report", () => {
  it("has objects, pods and pages, and none of the secrets in them", async () => {
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace: "ops", name: "token" },
      data: { token: SECRET },
    } as unknown as FakeObject;
    const cli = cliWithPods();
    cli.objects.push(secret);
    const { code, stdout } = await cli.run("bug-report");
    expect(code).toBe(EXIT.ok);
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({
      kind: "BugReport",
      namespace: "ops",
      objects: { VirtualApp: [{ metadata: { name: "shop" } }] },
    });
    expect(report.pods).toHaveLength(2);
    expect(report.sidecars["/debug/snapshot"][0].answer.version).toBe(17);
    expect(stdout).not.toContain(SECRET);
  });

  it("says what it could not read, and has the rest", async () => {
    const report = JSON.parse((await cliWithPods().run("bug-report")).stdout);
    expect(report.problems).toEqual(["version: /version not found"]);
  });
});

describe("completion", () => {
  it.each([
    [[""], ["check", "status", "explain", "completion"]],
    [
      ["explain", ""],
      ["owner", "request"],
    ],
    [
      ["status", "--"],
      ["--all-namespaces", "--namespace"],
    ],
    [["tap", ""], ["shop"]],
    [["wait", "-n", "ops", ""], ["shop"]],
  ])("of %j has %j", async (typed, expected) => {
    const { code, stdout } = await startCli([movingApp()]).run("__complete", ...typed);
    expect(code).toBe(EXIT.ok);
    expect(stdout.split("\n")).toEqual(expect.arrayContaining(expected));
  });

  it("prints a script for each shell, and refuses others", async () => {
    for (const shell of ["bash", "zsh", "fish"])
      expect((await startCli([]).run("completion", shell)).stdout).toContain("ctrlmesh __complete");
    expect(await startCli([]).run("completion", "tcsh")).toMatchObject({ code: EXIT.usage });
  });
});
