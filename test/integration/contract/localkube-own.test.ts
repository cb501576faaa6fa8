// The features of localkube beyond the contract: a history that tests can compact, bookmarks at an interval, the audit record,
// bounded buffers for watches, and localkube as a process.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, it } from "vitest";
import { createLocalKube, type LocalKube, type LocalKubeOptions } from "../../localkube/localkube.ts";
import { brief, type Client, createClient, eventually } from "./client.ts";
import { configMap } from "./context.ts";

const PATH = "/api/v1/namespaces/default/configmaps";
const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(options: LocalKubeOptions = {}): Promise<{ kube: LocalKube; client: Client }> {
  const kube = createLocalKube(options);
  await kube.start(new AbortController().signal);
  cleanups.push(() => kube.stop());
  const client = createClient({ server: kube.url, caPem: kube.caPem, token: kube.token, stop: async () => {} });
  cleanups.push(() => client.close());
  return { kube, client };
}

describe("localkube", () => {
  it("answers 410 for continue tokens and exact versions that are no longer in its history", async () => {
    const { kube, client } = await start();
    for (const name of ["a", "b", "c"]) await client.post(PATH, configMap(name));
    const { body: first } = await client.get(`${PATH}?limit=1`);
    await client.delete(`${PATH}/c`);
    kube.compact();
    const next = await client.get(`${PATH}?limit=1&continue=${first.metadata.continue}`);
    expect(next).toMatchObject({ code: 410, body: { reason: "Expired" } });
    const exact = await client.get(`${PATH}?resourceVersion=${first.metadata.resourceVersion}&resourceVersionMatch=Exact`);
    expect(exact).toMatchObject({ code: 410, body: { reason: "Expired" } });
  });

  it("sends bookmarks at its interval", async () => {
    const { client } = await start({ bookmarkMs: 20 });
    const watch = await client.watch(`${PATH}?watch=true&allowWatchBookmarks=true`);
    const { body: created } = await client.post("/api/v1/namespaces/default/secrets", {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "s" },
    });
    await watch.until(
      ({ type, object }) => type === "BOOKMARK" && object.metadata.resourceVersion === created.metadata.resourceVersion,
    );
    watch.close();
  });

  it("records each request with its user, in memory and as audit events", async () => {
    const lines: string[] = [];
    const { kube, client } = await start({ audit: { write: (line) => lines.push(line) } });
    await client.post(PATH, configMap("a"), { userAgent: "tester/1" });
    await client.get(`${PATH}/none`);
    await eventually(async () => expect(kube.audit().length).toBe(2));
    expect(kube.audit()).toMatchObject([
      { verb: "create", user: "admin", userAgent: "tester/1", resource: "configmaps", namespace: "default", code: 201 },
      { verb: "get", name: "none", code: 404 },
    ]);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        kind: "Event",
        apiVersion: "audit.k8s.io/v1",
        stage: "ResponseComplete",
        objectRef: { resource: "configmaps", namespace: "default", name: "a" },
      },
      { verb: "get", user: { username: "admin" }, responseStatus: { code: 404 } },
    ]);
  });

  it("ends a watch that its client does not read", async () => {
    const { kube, client } = await start({ maxWatchBufferBytes: 64 * 1024 });
    const closed = new Promise<void>((resolve) => {
      const stuck = request(`${kube.url}${PATH}?watch=true`, {
        ca: kube.caPem,
        headers: { authorization: `Bearer ${kube.token}` },
      });
      stuck.on("response", (response) => {
        response.pause();
        response.on("close", resolve);
        response.on("error", () => resolve());
      });
      stuck.end();
    });
    const watch = await client.watch(`${PATH}?watch=true`);
    const blob = "x".repeat(900_000);
    for (let index = 0; index < 12; index++) await client.post(PATH, configMap(`c${index}`, { data: { blob } }));
    await closed;
    watch.close();
  });

  it("serves new requests after its connections are dropped", async () => {
    const { kube, client } = await start();
    await client.post(PATH, configMap("a"));
    const watch = await client.watch(`${PATH}?watch=true`);
    await watch.until(({ type }) => type === "ADDED");
    kube.dropConnections();
    await watch.ended;
    expect(watch.events.map(brief)).toEqual(["ADDED a"]);
    expect((await client.get(`${PATH}/a`)).code).toBe(200);
  });

  it("runs as a process that prints its address and stops on SIGTERM", async () => {
    const dir = mkdtempSync(join(tmpdir(), "localkube-"));
    cleanups.push(async () => rmSync(dir, { recursive: true, force: true }));
    const auditLog = join(dir, "audit.log");
    const child = spawn(process.execPath, ["test/localkube/main.ts", "--print-ready", "--dir", dir, "--audit-log", auditLog], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = new Promise<number | null>((resolve) => child.on("exit", resolve));
    cleanups.push(async () => {
      child.kill("SIGKILL");
      await exited;
    });
    const line = await new Promise<string>((resolve) => createInterface(child.stdout).once("line", resolve));
    const ready = JSON.parse(line) as { server: string; kubeconfig: string; ca: string; token: string; pid: number };
    expect(ready).toMatchObject({ pid: child.pid, kubeconfig: join(dir, "kubeconfig"), ca: join(dir, "ca.crt") });
    const client = createClient({
      server: ready.server,
      caPem: readFileSync(ready.ca, "utf8"),
      token: ready.token,
      stop: async () => {},
    });
    expect((await client.get("/readyz")).code).toBe(200);
    await client.close();
    child.kill("SIGTERM");
    expect(await exited).toBe(0);
    expect(readFileSync(auditLog, "utf8")).toContain('"requestURI":"/readyz"');
  });

  it("refuses wrong usage with exit code 64", () => {
    expect(() => execFileSync(process.execPath, ["test/localkube/main.ts", "--port", "x"], { stdio: "pipe" })).toThrow(
      expect.objectContaining({ status: 64 }),
    );
  });
});
