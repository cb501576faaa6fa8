// Upgraded connections to another cluster: kubectl exec and port-forward, unmodified, over WebSocket and SPDY, through the sidecars of two
// pods, as tunnels to the cluster's server and as requests that the sidecars serve. Both control planes are real, and the other one has a
// kubelet. The streams end when the cluster moves away from the pod.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { parse, stringify } from "yaml";
import { MESH_CLUSTERS } from "../../src/api/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { createDividedCluster, type DividedCluster } from "../support/divided-cluster.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeKubelet, startFakeKubelet } from "../support/fake-kubelet.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { clusterOf, createKubeconfigs, proveHome } from "../support/kubeconfig-through.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube, itWithProgram } from "../support/requirements.ts";

const it = (name: string, body: () => Promise<void>) => itWithProgram("kubectl", name, body);
const NAMESPACE = "foo-system";
const TRANSPORTS = [
  ["Tunnel", "WebSocket", "true"],
  ["Tunnel", "SPDY", "false"],
  ["Terminate", "WebSocket", "true"],
  ["Terminate", "SPDY", "false"],
] as const;

describeWithKube("streams to another cluster", () => {
  const kubeconfigs = createKubeconfigs();
  let home: Kube;
  let eu: Kube;
  let mesh: Mesh;
  let kubelet: FakeKubelet;
  let echo: Server;
  let cluster: DividedCluster;
  let interception: "Tunnel" | "Terminate" = "Tunnel";
  const pods: MeshPod[] = [];
  const children = new Set<ChildProcessWithoutNullStreams>();

  const apply = (subset: "v2" | "default") => {
    const app = parse(demoVirtualApp());
    app.spec.route.subRules[0].match.push({ clusters: [subset === "v2" ? "eu" : "none"] });
    return mesh.apply(stringify(app));
  };
  /** Gives the cluster to the subset v2, or back to the default subset. */
  const giveTo = async (subset: "v2" | "default") => {
    await apply(subset);
    await eventually(async () => {
      const { status } = await mesh.client.get(MESH_CLUSTERS, { namespace: NAMESPACE, name: "eu" });
      if (interception === "Tunnel") expect(status?.owners).toMatchObject([{ subset }]);
      else expect(status?.namespaces).toMatchObject([{ owned: [{ subset }] }]);
      expect(status?.conditions?.find(({ type }) => type === "Ready")).toMatchObject({ status: "True" });
    }, 30_000);
  };
  const [other, owner] = [() => pods[0] as MeshPod, () => pods[1] as MeshPod];
  /** kubectl with the forward proxy of a pod. */
  function start(pod: MeshPod, websockets: string, args: readonly string[]) {
    const server = `${pod.proxyUrl}/_ctrlmesh/clusters/eu`;
    const served = { server, "certificate-authority-data": Buffer.from(pod.proxyCaPem).toString("base64") };
    const tunnelled = { ...clusterOf(eu), "proxy-url": pod.egressUrl };
    const file = kubeconfigs.write(interception === "Tunnel" ? tunnelled : served, { token: eu.token });
    const env = { ...process.env, KUBECTL_REMOTE_COMMAND_WEBSOCKETS: websockets, KUBECTL_PORT_FORWARD_WEBSOCKETS: websockets };
    const child = spawn("kubectl", ["--kubeconfig", file, "-n", "default", ...args], { env });
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
    child.stdin.on("error", () => undefined);
    children.add(child);
    const closed = once(child, "close").then(([code]) => code as number | null);
    void closed.then(() => children.delete(child));
    return { child, closed, text: () => text };
  }
  async function run(pod: MeshPod, websockets: string, args: readonly string[], input?: Buffer) {
    const { child, closed, text } = start(pod, websockets, args);
    child.stdin.end(input);
    return { code: await closed, text: text() };
  }
  const forwarded = (child: ReturnType<typeof start>) =>
    eventually(() => /127\.0\.0\.1:(\d+)/.exec(child.text())?.[1] ?? Promise.reject(new Error(child.text()))).then(Number);

  beforeAll(async () => {
    [home, eu] = await Promise.all([startKube(), startKube()]);
    mesh = await startMesh({ kube: home });
    kubelet = await startFakeKubelet(eu.kubeconfig);
    await kubelet.createPod("default", "worker");
    echo = createServer((socket) => socket.on("error", () => undefined).pipe(socket));
    await once(echo.listen(0, "127.0.0.1"), "listening");
    cluster = createDividedCluster("eu", eu);
    await cluster.join(mesh, 1, "Tunnel");
    await apply("v2");
    for (const [name, version] of Object.entries({ "foo-0": "v1", "canary-0": "v2" })) {
      const pod = await mesh.addPod({ name, labels: { version }, egress: true });
      await proveHome(pod);
      pods.push(pod);
    }
    await giveTo("v2");
  }, 180_000);
  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    await kubelet?.stop();
    await cluster?.close();
    await mesh?.stop();
    for (const kube of [home, eu]) await kube?.stop();
    echo?.close();
    kubeconfigs.remove();
  });

  describe.each(TRANSPORTS)("with %s over %s", (mode, _name, websockets) => {
    beforeAll(async () => {
      if (mode === interception) return;
      interception = mode;
      await cluster.join(mesh, 1);
      await giveTo("v2");
    });

    it("exec returns output and the exit code, and carries megabytes", async () => {
      const failing = await run(owner(), websockets, ["exec", "-v=6", "worker", "--", "sh", "-c", "echo out; exit 3"]);
      expect([failing.code, failing.text]).toEqual([3, expect.stringContaining("out\n")]);
      // Without a fallback to the other transport. SPDY begins with a POST.
      expect(failing.text).toMatch(websockets === "true" ? /GET https/ : /POST https/);
      expect(failing.text).not.toMatch(/fallback/i);
      const input = Buffer.alloc(8 * 1024 * 1024, "0123456789abcdef");
      const counted = await run(owner(), websockets, ["exec", "-i", "worker", "--", "wc", "-c"], input);
      expect(counted.text.trim()).toBe(String(input.length));
    });

    it("port-forward carries bytes both ways", async () => {
      const child = start(owner(), websockets, ["port-forward", "worker", `:${(echo.address() as { port: number }).port}`]);
      const sent = Buffer.alloc(1024 * 1024, "abc");
      const socket = connect(await forwarded(child), "127.0.0.1").on("error", () => undefined);
      const got: Buffer[] = [];
      socket.on("data", (chunk: Buffer) => got.push(chunk));
      socket.write(sent);
      await eventually(() => expect(Buffer.concat(got).equals(sent)).toBe(true), 20_000);
      socket.destroy();
      child.child.kill("SIGTERM");
      await child.closed;
    });

    it("a pod of another subset is refused by its sidecar, and kubectl shows the words", async () => {
      for (const args of [
        ["exec", "worker", "--", "true"],
        ["port-forward", "worker", ":80"],
      ]) {
        expect(await run(other(), websockets, args)).toEqual({
          code: 1,
          text: expect.stringContaining('belongs to subset "v2"'),
        });
      }
    });

    it("an answer of the API server that is no upgrade arrives as it is", async () => {
      const { code, text } = await run(owner(), websockets, ["exec", "worker", "-c", "none", "--", "true"]);
      expect([code, text]).toEqual([1, expect.stringContaining("container none")]);
    });

    it("end within seconds when the cluster moves away, also at the kubelet", async () => {
      const exec = start(owner(), websockets, ["exec", "-i", "worker", "--", "cat"]);
      const forward = start(owner(), websockets, ["port-forward", "worker", `:${(echo.address() as { port: number }).port}`]);
      exec.child.stdin.write("hello");
      await eventually(() => expect(exec.text()).toContain("hello"), 20_000);
      const socket = connect(await forwarded(forward), "127.0.0.1").on("error", () => undefined);
      socket.write("hello");
      await once(socket, "data");
      expect(await kubelet.stats()).toMatchObject({ exec: 1, portforward: 1 });
      const closed = once(socket, "close");
      await giveTo("default");
      await Promise.all([exec.closed, closed]);
      await eventually(async () => expect(await kubelet.stats()).toMatchObject({ exec: 0, portforward: 0 }), 20_000);
      forward.child.kill("SIGTERM");
      await forward.closed;
      expect((await run(other(), websockets, ["exec", "worker", "--", "echo", "mine"])).text).toContain("mine");
      await giveTo("v2");
    });
  });
});
