// The tests of the example operator: all of them on localkube (test/integration), and those that need the real garbage collector
// or admission on the real control plane (test/e2e). They check the objects and the audit log.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS, EVENTS, LEASES, NAMESPACES } from "../../src/kube/client/resources.ts";
import type { Child } from "./child-process.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./free-port.ts";
import {
  type ExampleServer,
  greetings,
  installGreetings,
  type ReadmeBlock,
  ROOT,
  readmeBlocks,
  startReplica,
} from "./greeting-operator.ts";
import { itWithProgram } from "./requirements.ts";

const SLOW = 30_000;

export interface ExampleOperatorSuiteOptions {
  /** The number of objects when the operator is killed. */
  readonly many: number;
  /** Also tests the takeover between replicas. */
  readonly replicas: boolean;
}

/** Defines the tests in the current suite. */
export function exampleOperatorSuite(start: () => Promise<ExampleServer>, options: ExampleOperatorSuiteOptions): void {
  const replicas: Child[] = [];
  let server: ExampleServer;

  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server?.stop());
  afterEach(async () => {
    for (const replica of replicas.splice(0)) await replica.stop();
  });

  const run = async (podName: string) => {
    const replica = await startReplica(server, podName);
    replicas.push(replica);
    return replica;
  };
  const inNamespace = async (namespace: string) => {
    await installGreetings(server.client);
    await server.client.create(NAMESPACES, { metadata: { name: namespace } });
    return greetings(server.client, namespace);
  };
  const leaderIs = (podName: string) =>
    eventually(async () => {
      const { spec } = await server.client.get(LEASES, { namespace: "default", name: "greeting-operator" });
      expect(spec?.holderIdentity).toMatch(`${podName}_`);
    }, SLOW);
  const says = (world: ReturnType<typeof greetings>, name: string, text: string) =>
    eventually(async () => {
      const greeting = await world.read(name);
      expect(greeting?.status).toMatchObject({ text, observedGeneration: greeting?.metadata.generation });
      expect([(await world.child(name))?.data?.text, await world.line(name)]).toEqual([text, text]);
    }, SLOW);

  itWithProgram("kubectl", "the README's commands print the output in the README", async () => {
    const operators: ReturnType<typeof spawn>[] = [];
    try {
      // The README's port may be in use on this machine.
      for (const block of readmeBlocks(await freePort())) {
        if (block.isOperator) operators.push(runInBackground(block, server.kubeconfig));
        else expect(await runBlock(block, server.kubeconfig)).toEqual({ commands: block.commands, stdout: block.output });
      }
    } finally {
      for (const operator of operators) {
        operator.kill("SIGTERM");
        expect(await once(operator, "exit")).toEqual([0, null]);
      }
    }
  });

  /** The replicas' writes after this call, without Events, which may be written late. */
  const writesSince = (before: number) =>
    server
      .writes()
      .slice(before)
      .filter(({ pod, request }) => pod !== "" && !request.endsWith("events"));

  it("the operator writes each object once and then stays silent", async () => {
    const world = await inNamespace("silent");
    await run("pod-0");
    await world.create("x", "Ada");
    await says(world, "x", "Hello, Ada!");
    await world.edit("x", { to: "Bob" });
    await says(world, "x", "Hello, Bob!");
    await eventually(async () => {
      const { items } = await server.client.list(EVENTS, { namespace: "silent" });
      expect(items.map(({ reason, message, count }) => `${reason} ${message} ${count}`).sort()).toEqual([
        "Greeted Hello, Ada! 1",
        "Greeted Hello, Bob! 1",
      ]);
    });
    const versions = async () =>
      [await world.read("x"), await world.child("x")].map((object) => object?.metadata.resourceVersion);
    const settled = await versions();
    await world.create("y", "Yves");
    await says(world, "y", "Hello, Yves!");
    expect(await versions()).toEqual(settled);
  });

  it("the operator repairs every drift of a child and of its line", async () => {
    const world = await inNamespace("drift");
    await run("pod-0");
    await world.create("x", "Ada");
    await says(world, "x", "Hello, Ada!");
    const drift = (body: unknown) => server.client.patch(CONFIG_MAPS, world.childRef("x"), { type: "merge", body });
    await drift({ data: { text: "Bah!" } });
    await says(world, "x", "Hello, Ada!");
    await drift({ metadata: { labels: { "app.kubernetes.io/managed-by": null } } });
    await eventually(async () =>
      expect((await world.child("x"))?.metadata.labels).toEqual({ "app.kubernetes.io/managed-by": "greeting-operator" }),
    );
    await drift({ metadata: { ownerReferences: null } });
    await eventually(async () => expect((await world.child("x"))?.metadata.ownerReferences).toMatchObject([{ name: "x" }]));
    await server.client.delete(CONFIG_MAPS, world.childRef("x"));
    await says(world, "x", "Hello, Ada!");
    const directory = { namespace: "default", name: "greetings" };
    await server.client.patch(CONFIG_MAPS, directory, { type: "merge", body: { data: { "drift.x": "Bah!" } } });
    await says(world, "x", "Hello, Ada!");
  });

  it("a new operator finishes the work of a killed one, including deletions in between", async () => {
    const world = await inNamespace("killed");
    const first = await run("pod-0");
    await leaderIs("pod-0");
    const names = Array.from({ length: options.many }, (_, index) => `g${index}`);
    const creating = Promise.all(names.map((name) => world.create(name, name)));
    await eventually(async () => expect(await world.child("g0")).toBeDefined(), SLOW);
    first.kill("SIGKILL");
    await creating;
    const gone = names.slice(0, 10);
    for (const name of gone) await world.remove(name);
    // The real garbage collector looks for new kinds at its start and then every 30 s.
    await server.restart?.();
    await run("pod-1");
    for (const name of names.slice(10)) await says(world, name, `Hello, ${name}!`);
    await eventually(async () => {
      for (const name of gone) {
        expect([await world.read(name), await world.line(name), await world.child(name)]).toEqual([
          undefined,
          undefined,
          undefined,
        ]);
      }
    }, 60_000);
  });

  if (!options.replicas) return;

  it("one of two replicas works; the other takes over at once after SIGTERM, and in time after kill -9", async () => {
    const world = await inNamespace("two");
    const first = await run("pod-0");
    await leaderIs("pod-0");
    const second = await run("pod-1");
    const before = server.writes().length;
    for (let index = 0; index < 20; index++) await world.create(`a${index}`, "Ada");
    await eventually(async () => expect(await world.child("a0")).toBeDefined(), SLOW);
    expect(await first.stop()).toBe(0);
    await leaderIs("pod-1");
    for (let index = 0; index < 20; index++) await says(world, `a${index}`, "Hello, Ada!");

    await run("pod-2");
    second.kill("SIGKILL");
    await world.create("b", "Bob");
    await says(world, "b", "Hello, Bob!");
    expect((await world.read("b"))?.status?.writtenBy).toBe("pod-2");

    const writers = writesSince(before).map(({ pod }) => pod);
    expect(writers).toEqual([...writers].sort()); // each writer's writes are consecutive
    expect(new Set(writers)).toEqual(new Set(["pod-0", "pod-1", "pod-2"]));
  });

  it("a leader that is paused until another one takes over ends when it resumes, without another write", async () => {
    const world = await inNamespace("stopped");
    const first = await run("pod-0");
    await leaderIs("pod-0");
    await world.create("x", "Ada");
    await says(world, "x", "Hello, Ada!");
    await run("pod-1");
    first.kill("SIGSTOP");
    await leaderIs("pod-1");
    await world.edit("x", { to: "Bob" });
    await says(world, "x", "Hello, Bob!");
    const before = server.writes().length;
    first.kill("SIGCONT");
    await eventually(() => first.exited, SLOW);
    expect(await first.stop()).toBe(1);
    expect(writesSince(before).filter(({ pod }) => pod === "pod-0")).toEqual([]);
  });
}

async function runBlock({ commands }: ReadmeBlock, kubeconfig: string) {
  const options = { cwd: ROOT, env: { ...process.env, KUBECONFIG: kubeconfig }, timeout: 90_000 };
  const { stdout } = await promisify(execFile)("bash", ["-euc", commands], options);
  return { commands, stdout };
}

function runInBackground({ commands }: ReadmeBlock, kubeconfig: string) {
  return spawn("bash", ["-euc", `exec ${commands}`], {
    cwd: ROOT,
    env: { ...process.env, KUBECONFIG: kubeconfig },
    stdio: "ignore",
  });
}
