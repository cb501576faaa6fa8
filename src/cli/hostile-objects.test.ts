// ctrlmesh with objects that tenants write: Events with missing or long fields, metadata that is null, control characters in JSON.
import { performance } from "node:perf_hooks";
import { describe, expect, it } from "vitest";
import { condition, type FakeObject, movingApp, startCli } from "../../test/support/cli.ts";
import { EXIT } from "./frame/exit.ts";

const event = (more: object): FakeObject =>
  ({
    apiVersion: "v1",
    kind: "Event",
    metadata: { namespace: "ops", name: "e", creationTimestamp: "2026-01-01T00:00:00Z" },
    involvedObject: { kind: "VirtualApp", namespace: "ops", name: "shop" },
    ...more,
  }) as unknown as FakeObject;

describe("events", () => {
  it("shows an Event that has no more than it must", async () => {
    const { code, stdout } = await startCli([movingApp(), event({})]).run("events", "shop");
    expect(code).toBe(EXIT.ok);
    expect(stdout).toMatch(/^0s +- +- +VirtualApp shop/m);
  });

  it("with one long reason stays of the size of its texts", async () => {
    const long = event({ type: "Normal", reason: "x".repeat(1_000_000), message: "m" });
    const short = Array.from({ length: 2_000 }, () => event({ type: "Normal", reason: "Moved", message: "m" }));
    const begin = performance.now();
    const { code, stdout } = await startCli([movingApp(), long, ...short]).run("events", "shop");
    expect(code).toBe(EXIT.ok);
    expect(stdout.length).toBeLessThan(2_000_000);
    expect(performance.now() - begin).toBeLessThan(2_000);
  });
});

it("a document for programs has no control characters either, and the same texts", async () => {
  const message = "a\u009b2J\u202eb\u0085c\u2028d";
  const { stdout } = await startCli([movingApp({}, [condition("Ready", "True", "X", message)])]).run("status", "-o", "json");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be printed.
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/);
  expect(JSON.parse(stdout).items[0].ready.message).toBe(message);
});

describe("bug-report", () => {
  it.each<[string, FakeObject]>([
    [
      "an object with annotations that are null",
      { ...movingApp(), metadata: { namespace: "ops", name: "odd", annotations: null } } as never,
    ],
    [
      "a pod with conditions that are null",
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { namespace: "ops", name: "p", labels: { "ctrlmesh.kruise.io/virtual-app-injected": "shop" } },
        spec: { containers: null },
        status: { conditions: null, containerStatuses: "x" },
      } as never,
    ],
  ])("has the rest beside %s", async (_, odd) => {
    const { code, stdout } = await startCli([movingApp(), odd]).run("bug-report");
    expect(code).toBe(EXIT.ok);
    expect(JSON.parse(stdout).objects.VirtualApp).toMatchObject(
      expect.arrayContaining(
        [{ metadata: { name: "shop" } }].map((each) =>
          expect.objectContaining({ metadata: expect.objectContaining(each.metadata) }),
        ),
      ),
    );
  });

  it("has no credential that an error repeats, nor what else a server answers for its version", async () => {
    const cli = startCli([movingApp()]);
    const secrets = ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln", "hunter2", "opaque-bearer", "s3cr3t"];
    const [jwt, password, bearer, key] = secrets;
    cli.answers.set("/version", { major: "1", minor: "36", gitVersion: "v1.36.0", token: key });
    cli.objects.filter = () => {
      throw new Error(
        `exec plugin: token ${jwt} refused, password="${password}", Authorization: Bearer ${bearer} (api_key: ${key})`,
      );
    };
    const { stdout } = await cli.run("bug-report");
    for (const secret of secrets) expect(stdout).not.toContain(secret);
    expect(JSON.parse(stdout)).toMatchObject({
      server: { gitVersion: "v1.36.0" },
      problems: expect.arrayContaining([expect.stringContaining("exec plugin: token")]),
    });
  });

  it("ends with 1 if nothing could be read", async () => {
    const cli = startCli([]);
    cli.objects.filter = () => {
      throw new Error('User "nobody" cannot list');
    };
    const { code, stdout } = await cli.run("bug-report");
    expect(code).toBe(EXIT.failed);
    expect(JSON.parse(stdout).problems.length).toBeGreaterThan(5);
  });
});

it("a sidecar does not choose the kind of the document", async () => {
  const cli = startCli([movingApp()]);
  cli.answers.set("/api/v1", { resources: [{ name: "pods", namespaced: true }] });
  const answer = {
    apiVersion: "v1",
    kind: "Secret",
    pod: "x",
    decision: "forwarded",
    message: "m",
    steps: { first: [], total: 0 },
  };
  cli.sidecars.set("shop-0", { "/debug/explain": () => answer });
  const { stdout } = await cli.run("explain", "request", "shop-0", "list", "pods", "-o", "json");
  expect(JSON.parse(stdout)).toMatchObject({ kind: "RequestExplanation", pod: { name: "shop-0" }, decision: "forwarded" });
});
