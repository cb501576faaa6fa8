// exec, attach and port-forward through a proxy, by kubectl over WebSocket and SPDY, and by raw WebSockets. The streams are complete in
// both directions and end on both sides together. In a namespace of another subset, kubectl shows the proxy's refusal.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type FakeKubelet, startFakeKubelet } from "../support/fake-kubelet.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { memoryOf } from "../support/process-memory.ts";
import { openRaw, type RawTarget } from "../support/raw-client.ts";
import { describeWithKube, itWithProgram } from "../support/requirements.ts";

const it = (name: string, body: () => Promise<void>) => itWithProgram("kubectl", name, body);
const MB = 1024 * 1024;

// WebSocket is the default of kubectl 1.30 and later. SPDY is the older default and the fallback.
const TRANSPORTS = [
  ["WebSocket", "true"],
  ["SPDY", "false"],
] as const;

interface Result {
  readonly code: number | null;
  readonly stdout: Buffer;
  readonly stderr: string;
}

describeWithKube("upgrades", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  let kubelet: FakeKubelet;
  let echo: Server;
  const children = new Set<ChildProcessWithoutNullStreams>();

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "canary-eu"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    kubelet = await startFakeKubelet(kube.kubeconfig);
    await kubelet.createPod("team-a", "worker");
    await kubelet.createPod("canary-eu", "worker");
    pod = await mesh.addPod({ name: "foo-0" });
    echo = createServer((socket) => socket.on("error", () => undefined).pipe(socket));
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
  });
  afterAll(async () => {
    for (const child of children) child.kill("SIGKILL");
    await kubelet?.stop();
    await mesh?.stop();
    await kube?.stop();
    echo?.close();
  });

  const start = (websockets: string, args: readonly string[]): ChildProcessWithoutNullStreams => {
    const env = { ...process.env, KUBECTL_REMOTE_COMMAND_WEBSOCKETS: websockets, KUBECTL_PORT_FORWARD_WEBSOCKETS: websockets };
    const child = spawn("kubectl", ["--kubeconfig", pod.adminKubeconfig, ...args], { env });
    children.add(child);
    child.once("close", () => children.delete(child));
    return child;
  };
  const run = async (websockets: string, args: readonly string[], input?: Buffer): Promise<Result> => {
    const child = start(websockets, args);
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on("data", (chunk: Buffer) => stderr.push(chunk));
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    const [code] = (await once(child, "close")) as [number | null];
    return { code, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() };
  };
  const inWorker = (namespace: string, verb: string, ...more: string[]) => [verb, "-n", namespace, "worker", ...more];

  describe.each(TRANSPORTS)("over %s", (_name, websockets) => {
    it("exec returns output, errors and the exit code", async () => {
      const { code, stdout, stderr } = await run(
        websockets,
        inWorker("team-a", "exec", "-v=6", "--", "sh", "-c", "echo out; echo err >&2; exit 3"),
      );
      expect([code, stdout.toString()]).toEqual([3, "out\n"]);
      expect(stderr).toContain("err\n");
      expect(stderr).toContain("exit code 3");
      // kubectl uses the transport under test without a fallback. SPDY begins with a POST.
      expect(stderr).toMatch(websockets === "true" ? /GET https/ : /POST https/);
      expect(stderr).not.toMatch(/fallback/i);
    });

    it("exec carries large input and output, and the proxy's memory does not grow with them", async () => {
      const before = memoryOf(pod.proxy.pid).rssMb;
      const input = Buffer.alloc(40 * MB, "0123456789abcdef");
      const counted = await run(websockets, inWorker("team-a", "exec", "-i", "--", "wc", "-c"), input);
      expect(counted.stdout.toString().trim(), counted.stderr).toBe(String(input.length));
      const { stdout } = await run(websockets, inWorker("team-a", "exec", "--", "head", "-c", String(40 * MB), "/dev/zero"));
      expect(stdout.length).toBe(40 * MB);
      expect(memoryOf(pod.proxy.pid).rssMb - before).toBeLessThan(60);
    });

    it("attach returns its input from the echoing container", async () => {
      const { stdout, stderr } = await run(websockets, inWorker("team-a", "attach", "-i"), Buffer.from("hello\n"));
      expect(stdout.toString()).toBe("hello\n");
      expect(stderr).toContain("attached to main");
    });

    it("port-forward carries several connections at once", async () => {
      const { port } = echo.address() as { port: number };
      const child = start(
        websockets,
        inWorker("team-a", "port-forward", "--address=127.0.0.1", `:${port}`).map((arg) =>
          arg === "worker" ? "pod/worker" : arg,
        ),
      );
      let output = "";
      child.stdout.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
      child.stderr.on("data", (chunk: Buffer) => {
        output += chunk.toString();
      });
      const local = await eventually(() => /127\.0\.0\.1:(\d+)/.exec(output)?.[1] ?? Promise.reject(new Error(output)));
      const sent = Buffer.alloc(2 * MB, "abc");
      const answers = await Promise.all([1, 2, 3].map(() => echoed(Number(local), sent)));
      expect(answers.every((answer) => answer.equals(sent))).toBe(true);
      const closed = once(child, "close");
      child.kill("SIGTERM");
      await closed;
      await eventually(async () => expect((await kubelet.stats()).portforward).toBe(0));
    });

    it("a killed client leaves no session open at the kubelet", async () => {
      const child = start(websockets, inWorker("team-a", "exec", "-i", "--", "cat"));
      child.stdin.write("hello");
      await once(child.stdout, "data");
      expect((await kubelet.stats()).exec).toBe(1);
      child.kill("SIGKILL");
      await eventually(async () => expect((await kubelet.stats()).exec).toBe(0));
    });

    it("a namespace of another subset is refused, and kubectl shows the owner", async () => {
      for (const args of [
        inWorker("canary-eu", "exec", "--", "true"),
        inWorker("canary-eu", "attach"),
        ["port-forward", "-n", "canary-eu", "pod/worker", ":80"],
        inWorker("canary-eu", "logs"),
      ]) {
        const { code, stderr } = await run(websockets, args);
        expect([args[0], code]).toEqual([args[0], 1]);
        expect(stderr).toContain("Forbidden");
        expect(stderr).toContain('namespace "canary-eu" belongs to subset "v2"');
      }
    });
  });

  it("raw WebSockets of every subprotocol get the same bytes as without a proxy", async () => {
    const direct = { url: kube.server, caPem: kube.caPem, token: kube.token };
    const proxied = { url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token };
    const exec = "/api/v1/namespaces/team-a/pods/worker/exec?command=echo&command=hello&stdout=true&stderr=true";
    for (const protocol of ["v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io", "nonsense"]) {
      const answers = await Promise.all([direct, proxied].map((target) => webSocket(target, exec, protocol)));
      expect(answers[1], protocol).toEqual(answers[0]);
      if (protocol !== "nonsense") expect(answers[0]?.status, protocol).toBe(101);
    }
    const none = "/api/v1/namespaces/team-a/pods/none/exec?command=echo&stdout=true";
    const answers = await Promise.all([direct, proxied].map((target) => webSocket(target, none, "v5.channel.k8s.io")));
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[0]?.status).toBe(404);
  });

  it("a tunnel ends when its namespace moves to another subset", async () => {
    await mesh.createNamespace("team-b");
    await kubelet.createPod("team-b", "worker");
    const child = start("true", inWorker("team-b", "exec", "-i", "--", "cat"));
    child.stdin.write("hello");
    await once(child.stdout, "data");
    let closed = false;
    child.once("close", () => {
      closed = true;
    });
    await mesh.labelNamespace("team-b", { "ns-type": "canary-1" });
    await eventually(() => closed);
    await eventually(async () => expect((await kubelet.stats()).exec).toBe(0));
  });
});

async function echoed(port: number, bytes: Buffer): Promise<Buffer> {
  const socket: Socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  const chunks: Buffer[] = [];
  let received = 0;
  const all = new Promise<void>((resolve, reject) => {
    socket.on("error", reject);
    socket.once("close", () => reject(new Error(`closed after ${received} bytes`)));
    socket.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      received += chunk.length;
      if (received >= bytes.length) resolve();
    });
  });
  socket.write(bytes);
  await all;
  socket.destroy();
  return Buffer.concat(chunks);
}

interface WebSocketAnswer {
  readonly status: number;
  readonly headers: readonly string[];
  /** All frames in the order of their channels, since the order between channels is not fixed. */
  readonly frames: readonly string[];
}

async function webSocket(target: RawTarget, path: string, protocol: string): Promise<WebSocketAnswer> {
  const connection = await openRaw(target);
  const head = [
    `GET ${path} HTTP/1.1`,
    `Host: ${new URL(target.url).host}`,
    `Authorization: Bearer ${target.token}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    `Sec-WebSocket-Protocol: ${protocol}`,
  ];
  connection.socket.write(`${head.join("\r\n")}\r\n\r\n`);
  const status = Number(await connection.until((bytes) => /^HTTP\/1\.1 (\d+).*\r\n\r\n/s.exec(bytes.toString("latin1"))?.[1]));
  if (status === 101) await connection.until((bytes) => (hasClose(bytes) ? true : undefined)).catch(() => undefined);
  else await connection.until((bytes) => (bytes.includes("}") ? true : undefined)).catch(() => undefined);
  connection.socket.destroy();
  const bytes = connection.received();
  const end = bytes.indexOf("\r\n\r\n");
  const headers = bytes
    .toString("latin1", 0, end)
    .split("\r\n")
    .slice(1)
    .map((line) => line.toLowerCase());
  const kept = headers
    .filter((line) => !/^(date|audit-id|connection|content-length|transfer-encoding|keep-alive):/.test(line))
    .sort();
  if (status !== 101)
    return { status, headers: kept, frames: [bytes.toString("latin1", bytes.indexOf("{"), bytes.lastIndexOf("}"))] };
  return {
    status,
    headers: kept,
    frames: framesOf(bytes.subarray(end + 4))
      .map((frame) => frame.toString("latin1"))
      .sort(),
  };
}

function hasClose(bytes: Buffer): boolean {
  const from = bytes.indexOf("\r\n\r\n") + 4;
  return framesOf(bytes.subarray(from)).some((frame) => frame[0] === 0x88);
}

/** Splits unmasked frames of a server, each with its head (RFC 6455, section 5.2). */
function framesOf(bytes: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at + 2 <= bytes.length; ) {
    const short = (bytes[at + 1] ?? 0) & 0x7f;
    const size = short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : Number(bytes.readBigUInt64BE(at + 2));
    const next = at + (short < 126 ? 2 : short === 126 ? 4 : 10) + size;
    if (next > bytes.length) break;
    frames.push(bytes.subarray(at, next));
    at = next;
  }
  return frames;
}
