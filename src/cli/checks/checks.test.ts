import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { condition, type FakeObject, movingSlice, startCli } from "../../../test/support/cli.ts";
import {
  ADMISSION,
  ago,
  appWith,
  caBundle,
  cliOfMesh,
  GOOD,
  HOUR,
  lease,
  manager,
  object,
  policyWith,
  READY,
  sidecar,
  webhooks,
} from "../../../test/support/cli-of-mesh.ts";
import { CHECKS } from "../commands/check.ts";
import { EXIT } from "../frame/exit.ts";
import { LEAST_MINOR } from "./pre-checks.ts";

interface Found {
  readonly check: string;
  readonly severity: string;
  readonly object?: string;
  readonly message: string;
  readonly docs: string;
}

async function findingsOf(cli: ReturnType<typeof startCli>, ...flags: string[]) {
  const { code, stdout } = await cli.run("check", "-o", "json", ...flags);
  return { code, findings: JSON.parse(stdout).findings as Found[] };
}

describe("check", () => {
  it("ends with 0 and a line for each check if nothing is found", async () => {
    const { code, stdout } = await cliOfMesh().run("check");
    expect(code).toBe(EXIT.ok);
    expect(stdout).toMatch(/^(ok {7}[a-z-]+: .*\n){14}0 errors, 0 warnings\n$/);
  });

  it.each<
    [what: string, parts: Readonly<Record<string, readonly FakeObject[]>>, severity: string, check: string, message: RegExp]
  >([
    ["no manager has ever run", { state: [] }, "error", "leader", /no manager has reported/],
    ["the leader is silent", { lease: [lease(ago(60_000))] }, "error", "leader", /has not renewed its Lease for 1m/],
    ["nobody holds the lease", { lease: [lease(ago(1_000), "")] }, "error", "leader", /no manager holds the Lease/],
    ["one manager is not ready", { managers: [manager("ctrlmesh-manager-0")] }, "warning", "replicas", /one manager is ready/],
    ["no manager is ready", { managers: [] }, "error", "replicas", /no manager is ready/],
    ["a webhook configuration is deleted", { injection: [] }, "error", "webhooks", /is missing/],
    [
      "a webhook configuration is empty",
      { validation: [object("ValidatingWebhookConfiguration", ADMISSION, "ctrlmesh-validation")] },
      "error",
      "webhooks",
      /has no entry/,
    ],
    [
      "a caBundle is garbage",
      { injection: [object("MutatingWebhookConfiguration", ADMISSION, "ctrlmesh-injection", { webhooks: webhooks("eA==") })] },
      "error",
      "webhook-ca",
      /its caBundle cannot be read/,
    ],
    [
      "sidecars differ",
      { sidecars: [sidecar("shop-0", "proxy:1"), sidecar("shop-1", "proxy:2")] },
      "warning",
      "sidecars",
      /1 pod with proxy:1, 1 pod with proxy:2/,
    ],
    ["an app has no status", { apps: [appWith([], { status: undefined })] }, "error", "apps", /has no status/],
    [
      "a lock is forbidden",
      { apps: [appWith([condition("LockPermitted", "False", "LockDenied", "the Role ...")])] },
      "error",
      "apps",
      /LockPermitted is False \(LockDenied\): the Role/,
    ],
    [
      "two pods own one namespace",
      { apps: [appWith([condition("Ready", "False", "OwnershipConflict", "pod shop-9")])] },
      "error",
      "apps",
      /OwnershipConflict/,
    ],
    ["an app is paused", { apps: [appWith(READY, { spec: { route: { paused: true } } })] }, "warning", "left-on", /is paused/],
    [
      "a namespace of another cluster is frozen",
      { apps: [appWith(READY, { spec: { route: { frozen: { "eu-1/team-b": "restore" } } } })] },
      "warning",
      "left-on",
      /namespace team-b of cluster eu-1 is frozen, so its operator writes nothing there: restore/,
    ],
    [
      "a freeze stops nobody",
      {
        apps: [
          appWith([condition("Ready", "True", "InSync"), condition("Converged", "False", "NotFrozen", "why")], {
            spec: { route: { frozen: { "eu-1/team-b": "restore" } } },
          }),
        ],
      },
      "warning",
      "apps",
      /Converged is False \(NotFrozen\): why/,
    ],
    [
      "a guard only warns",
      { apps: [appWith(READY, { spec: { route: { guard: "Warn" } } })] },
      "warning",
      "left-on",
      /guard is Warn/,
    ],
    [
      "a policy is refused",
      { policies: [policyWith("TrafficPolicy", { conditions: [condition("Accepted", "False", "Invalid", "spec.x")] })] },
      "error",
      "policies",
      /Accepted is False \(Invalid\): spec.x/,
    ],
    [
      "a proxy is behind",
      { policies: [policyWith("CircuitBreaker", { conditions: [condition("Synced", "False", "ProxiesBehind")] })] },
      "warning",
      "policies",
      /ProxiesBehind/,
    ],
    [
      "a breaker is open",
      { policies: [policyWith("CircuitBreaker", { targets: { total: 2, synced: 2, opened: 2 } })] },
      "warning",
      "breakers",
      /open in 2 pods/,
    ],
    [
      "faults run for a day",
      {
        policies: [
          policyWith("FaultInjection", {
            mode: "Enforce",
            conditions: [{ ...condition("Active", "True", "Active"), lastTransitionTime: ago(24 * HOUR) }],
          }),
        ],
      },
      "warning",
      "faults",
      /has injected faults for 1d/,
    ],
  ])("finds that %s", async (_what, parts, severity, check, message) => {
    const { code, findings } = await findingsOf(cliOfMesh(parts));
    expect(findings).toContainEqual(expect.objectContaining({ check, severity, message: expect.stringMatching(message) }));
    expect(code).toBe(severity === "error" ? EXIT.findings : EXIT.ok);
    expect((await findingsOf(cliOfMesh(parts), "--fail-on", "warning")).code).toBe(EXIT.findings);
  });

  it("warns of a CA three days before its end, and a day before it is an error", async () => {
    for (const [hours, severity] of [
      [71, ["warning"]],
      [23, ["error"]],
      [73, []],
    ] as const) {
      const injection = object("MutatingWebhookConfiguration", ADMISSION, "ctrlmesh-injection", {
        webhooks: webhooks(caBundle(hours)),
      });
      const { findings } = await findingsOf(cliOfMesh({ injection: [injection] }));
      expect(findings.map((each) => each.severity)).toEqual(severity);
    }
  });

  it("finds only what is not served if the mesh is not installed", async () => {
    const { code, findings } = await findingsOf(startCli([]));
    expect(code).toBe(EXIT.findings);
    expect(new Set(findings.map(({ check }) => check))).toEqual(new Set(["kinds"]));
  });

  it("does not look at short moves, nor at other apps with --app", async () => {
    const moving = appWith([
      condition("Ready", "True", "Draining"),
      { ...condition("Converged", "False", "Moving"), lastTransitionTime: ago(60_000) },
    ]);
    expect((await findingsOf(cliOfMesh({ apps: [moving] }))).findings).toEqual([]);
    const bad = appWith([condition("Ready", "False", "Invalid")], { metadata: { namespace: "ops", name: "bad", generation: 3 } });
    expect((await findingsOf(cliOfMesh({ apps: [appWith(), bad] }), "--app", "shop")).findings).toEqual([]);
  });

  it("waits until nothing is found, and no longer than it may", async () => {
    const cli = cliOfMesh({ injection: [] });
    const waiting = cli.run("check", "--wait", "5s");
    await cli.clock.advance(4_000);
    cli.objects.push(...(GOOD.injection ?? []));
    await cli.clock.advance(1_000);
    expect((await waiting).code).toBe(EXIT.ok);
    const late = cliOfMesh({ injection: [] });
    const waitingInVain = late.run("check", "--wait", "5s");
    await late.clock.advance(5_000);
    expect((await waitingInVain).code).toBe(EXIT.findings);
  });

  it("says of a check that it may not do what is missing", async () => {
    const cli = cliOfMesh();
    cli.answers.delete("/version");
    expect((await findingsOf(cli, "--pre")).findings).toContainEqual(
      expect.objectContaining({ check: "kubernetes", severity: "warning", message: expect.stringContaining("not checked") }),
    );
  });

  it("names a page and a heading that exist in each finding of these tests", async () => {
    const findings = await Promise.all(
      Object.keys(GOOD).map(async (part) => (await findingsOf(cliOfMesh({ [part]: [] }))).findings),
    );
    for (const { docs } of findings.flat()) {
      const [file = "", anchor] = docs.split("#");
      const page = readFileSync(new URL(`../../../docs/${file}`, import.meta.url), "utf8");
      const anchors = [...page.matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) =>
        text
          .toLowerCase()
          .replaceAll(/[^\w -]/g, "")
          .replaceAll(" ", "-"),
      );
      if (anchor !== undefined) expect(anchors).toContain(anchor);
    }
  });
});

describe("check --pre", () => {
  it("ends with 0 in a cluster that can get the mesh", async () => {
    expect(await cliOfMesh().run("check", "--pre")).toMatchObject({
      code: EXIT.ok,
      stdout: expect.stringMatching(/^(ok .*\n){3}0 errors/),
    });
  });

  it("finds an old API server, a missing right, and the kinds of another mesh", async () => {
    const crd = object("CustomResourceDefinition", "apiextensions.k8s.io/v1", "virtualapps.ctrlmesh.kruise.io");
    const cli = cliOfMesh({ state: [crd] });
    cli.answers.set("/version", { major: "1", minor: `${LEAST_MINOR - 1}+` });
    cli.denied.add("create clusterroles.rbac.authorization.k8s.io");
    const { code, findings } = await findingsOf(cli, "--pre");
    expect(code).toBe(EXIT.findings);
    expect(findings.map(({ check }) => check)).toEqual(["kubernetes", "rights", "other-mesh"]);
  });

  it("knows the least version of the chart", () => {
    const chart = readFileSync(new URL("../../../charts/ctrlmesh/Chart.yaml", import.meta.url), "utf8");
    expect(chart).toContain(`kubeVersion: ">=1.${LEAST_MINOR}.0-0"`);
  });
});

it("check has tests for each of its checks", () => {
  const files = ["./checks.test.ts", "./cluster-rule-checks.test.ts"];
  const text = files.map((file) => readFileSync(new URL(file, import.meta.url), "utf8")).join("");
  for (const { name } of CHECKS) expect(text).toContain(`"${name}"`);
});

describe("check of slices", () => {
  const owned = (subset: string) => ({
    state: "Owned",
    owners: [{ subset }],
    since: "2026-01-01T00:00:00Z",
    namespaces: ["team-a", "team-b"],
  });
  const slicesOf = async (slices: readonly FakeObject[], more: object = {}) => {
    const { findings } = await findingsOf(cliOfMesh({ slices, ...more }));
    return findings.filter(({ check }) => check === "slices").map(({ severity, message }) => `${severity}: ${message}`);
  };
  const elsewhere = { ...movingSlice(), metadata: { ...movingSlice().metadata, labels: { "ctrlmesh.kruise.io/app": "other" } } };

  it("finds an app without slices, and an owner beside another one", async () => {
    expect(await slicesOf([elsewhere])).toEqual(["error: has no OwnershipSlice"]);
    expect(await slicesOf([movingSlice({ ownership: [owned("blue"), owned("green")] })])).toEqual([
      "error: team-a is owned by blue and by green",
      "error: team-b is owned by blue and by green",
    ]);
  });

  it("takes an app that has no routes yet, or that is new, for right", async () => {
    expect(await slicesOf([elsewhere], { apps: [appWith(READY, { status: { conditions: READY } })] })).toEqual([]);
    const metadata = { namespace: "ops", name: "shop", generation: 3, creationTimestamp: ago(1_000) };
    expect(await slicesOf([elsewhere], { apps: [appWith(READY, { metadata })] })).toEqual([]);
  });

  it("only warns if no app has slices, since a flag switches them off", async () => {
    expect(await slicesOf([])).toEqual([
      expect.stringMatching(/^warning: no app has an OwnershipSlice: .*--ownership-slices=false/),
    ]);
  });
});

describe("check of other clusters", () => {
  const meshCluster = (...conditions: object[]) =>
    ({
      apiVersion: "ctrlmesh.kruise.io/v1alpha1",
      kind: "MeshCluster",
      metadata: { namespace: "ops", name: "eu-1" },
      status: { conditions },
    }) as unknown as FakeObject;
  const is = (type: string, status: string, reason: string, sinceMs = 0) => ({
    type,
    status,
    reason,
    message: "why",
    lastTransitionTime: ago(sinceMs),
  });
  const found = async (...conditions: object[]) => {
    const { findings } = await findingsOf(cliOfMesh({ slices: [movingSlice(), meshCluster(...conditions)] }));
    return findings.filter(({ check }) => check === "clusters").map(({ severity, message }) => `${severity}: ${message}`);
  };

  it("finds a cluster with two writers or a second name, and one that moves for long", async () => {
    expect(await found(is("Ready", "False", "PodsNotEnforcing"), is("Enforced", "False", "PodsNotEnforcing"))).toEqual([
      "error: Enforced is False (PodsNotEnforcing): why",
    ]);
    expect(await found(is("Identified", "False", "AlreadyKnown"))).toEqual(["error: Identified is False (AlreadyKnown): why"]);
    expect(await found(is("Enforced", "False", "Moving", 3_600_000))).toEqual(["warning: Enforced is False (Moving): why"]);
  });

  it("finds a cluster whose namespaces the manager cannot read, or has not read for long", async () => {
    expect(await found(is("NamespacesWatched", "False", "SecretNotReadable"))).toEqual([
      "error: NamespacesWatched is False (SecretNotReadable): why",
    ]);
    expect(await found(is("NamespacesWatched", "False", "NotListedYet", 60_000))).toEqual([]);
    expect(await found(is("NamespacesWatched", "False", "NotListedYet", 3_600_000))).toEqual([
      "warning: NamespacesWatched is False (NotListedYet): why",
    ]);
  });

  it("finds a certificate or token for a cluster that ends soon", async () => {
    expect(await found(is("CredentialsValid", "False", "ExpiringSoon"))).toEqual([
      "warning: CredentialsValid is False (ExpiringSoon): why",
    ]);
    expect(await found(is("CredentialsValid", "Unknown", "NotKnown"))).toEqual([]);
  });

  it("takes a move, and a cluster that nobody divides, for right", async () => {
    expect(await found(is("Enforced", "False", "Moving", 60_000))).toEqual([]);
    expect(await found(is("Ready", "Unknown", "NotDivided"), is("Enforced", "Unknown", "NotDivided"))).toEqual([]);
  });
});

describe("check --sidecars", () => {
  const running = (name: string) => ({ ...sidecar(name, "proxy:1"), status: { phase: "Running" } }) as unknown as FakeObject;
  const certificatesOf = async (hours: readonly (number | undefined)[]) => {
    const cli = cliOfMesh({ sidecars: hours.map((_, at) => running(`shop-${at}`)) });
    for (const [at, left] of hours.entries()) {
      const seconds = (Date.parse(ago(0)) + (left ?? 0) * HOUR) / 1_000;
      const text = `# HELP a\nctrlmesh_certificate_expiry_timestamp_seconds{name="serving"} ${seconds}\n`;
      if (left !== undefined) cli.sidecars.set(`shop-${at}`, { "/metrics": () => text as unknown as object });
    }
    const { findings } = await findingsOf(cli, "--sidecars");
    return findings.filter(({ check }) => check === "certificates");
  };

  it("finds a certificate that has not been renewed in time", async () => {
    const found = await certificatesOf([23, 9, 5]);
    expect(found.map(({ severity, object }) => [severity, object])).toEqual([
      ["warning", "Pod ops/shop-1"],
      ["error", "Pod ops/shop-2"],
    ]);
    expect(found[0]?.message).toBe("its certificate ends at 2026-01-01T09:00:00.000Z, and is not renewed");
  });

  it("warns once of those that it cannot ask, and asks 20 at most", async () => {
    expect((await certificatesOf([23, undefined, undefined])).map(({ message }) => message)).toEqual([
      "2 sidecars could not be asked, for example pod ops/shop-1: no port of pod shop-1 can be reached here",
    ]);
    expect(await certificatesOf(Array.from({ length: 25 }, (_, at) => (at < 20 ? 23 : undefined)))).toEqual([]);
  });
});
