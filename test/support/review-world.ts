// Pods of one app on loopback addresses: each has the listener for reviews on the one port, an operator that answers in its name, and a folder with the
// operator's certificate. Routes, peers and operators are set by the test; TLS and sockets are real.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders, RequestListener } from "node:http";
import { Agent, createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CaOptions, createCa, issueServerCertificate, type KeyCertificate } from "../../src/base/certificates.ts";
import { tryParseJson } from "../../src/base/json.ts";
import type { Registry } from "../../src/base/metrics.ts";
import { podUri } from "../../src/base/pem.ts";
import type { PodPeer } from "../../src/mesh/contract/peer-type.ts";
import type { RouteTable } from "../../src/mesh/ownership/table.ts";
import type { LimitRule } from "../../src/policy/policy.ts";
import type { Reviews } from "../../src/proxy/reviews/create-reviews.ts";
import type { Peers } from "../../src/proxy/session/peers-handler.ts";
import { freePort } from "./free-port.ts";
import { startListener } from "./review-listener.ts";
import { snapshot } from "./route-table.ts";

/** The name of the Service by which the API server calls. */
export const SERVICE = "webhooks.ops.svc";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface ReviewPod {
  readonly peer: PodPeer;
  readonly webhooks: Reviews;
  readonly registry: Registry;
  /** The calls that its operator has answered, as method and path. */
  readonly answered: string[];
  readonly certDir: string;
  /** Replaces what the operator does with a call. */
  serve(handler: RequestListener | undefined): void;
  enforce(table: RouteTable): void;
  limit(...rules: LimitRule[]): void;
  /** Replaces the operator's certificate, its files first. */
  rotate(): Promise<void>;
  writePair(pair: KeyCertificate): Promise<void>;
  stopOperator(): Promise<void>;
  /** The pod ends, as after SIGTERM. The lists of the others still have it until the next `tell`. */
  stop(): Promise<void>;
}

export interface ReviewWorld {
  readonly port: number;
  readonly mesh: KeyCertificate;
  readonly operatorCa: KeyCertificate;
  /** @param address default: the next on the loopback */
  addPod(name: string, subset: string, address?: string): Promise<ReviewPod>;
  /** Tells all pods who is there; default: all pods, ready. */
  tell(peers?: readonly PodPeer[]): void;
  /** Calls a pod as an API server does. */
  call(pod: ReviewPod | PodPeer, body: object | string | undefined, options?: CallOptions): Promise<Answer>;
  stop(): Promise<void>;
}

export interface CallOptions {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly tls?: object;
}

const ca = (commonName: string, more: Partial<CaOptions> = {}) => createCa({ commonName, now: Date.now(), ...more });

export async function startReviewWorld(): Promise<ReviewWorld> {
  const [mesh, operatorCa] = [ca("mesh"), ca("operator")];
  const port = await freePort();
  const pods: ReviewPod[] = [];
  const lists = new Map<string, ToldPeers>();
  let nextHost = 2;
  const world: ReviewWorld = {
    port,
    mesh,
    operatorCa,
    async addPod(name, subset, address = `127.0.0.${nextHost++}`) {
      const peer: PodPeer = { namespace: "ops", name, uid: `uid-${name}`, address, subset, isReady: true };
      const peers = createToldPeers();
      lists.set(peer.uid, peers);
      const started = await startPod(peer, peers, { port, mesh, operatorCa });
      const pod: ReviewPod = {
        ...started,
        async stop() {
          pods.splice(pods.indexOf(pod), 1);
          lists.delete(peer.uid);
          await started.stop();
        },
      };
      pods.push(pod);
      return pod;
    },
    tell(peers = pods.map(({ peer }) => peer)) {
      for (const [uid, list] of lists) list.tell(peers.filter((each) => each.uid !== uid));
    },
    call: (pod, body, options) => call("peer" in pod ? pod.peer : pod, body, { port, ca: operatorCa.certPem, ...options }),
    async stop() {
      await Promise.all([...pods].map((pod) => pod.stop()));
    },
  };
  return world;
}

type ToldPeers = Peers & { tell(peers: readonly PodPeer[]): void };

function createToldPeers(): ToldPeers {
  const listeners: (() => void)[] = [];
  let current: readonly PodPeer[] = [];
  return {
    get current() {
      return current;
    },
    onChange: (listener) => void listeners.push(listener),
    tell(peers) {
      current = peers;
      for (const listener of listeners) listener();
    },
  };
}

async function startPod(
  peer: PodPeer,
  peers: Peers,
  { port, mesh, operatorCa }: Pick<ReviewWorld, "port" | "mesh" | "operatorCa">,
): Promise<ReviewPod> {
  const certDir = await mkdtemp(join(tmpdir(), `certs-${peer.name}-`));
  const newPair = () => issueServerCertificate(operatorCa, { dnsNames: [SERVICE], now: Date.now() });
  const writePair = async ({ certPem, keyPem }: KeyCertificate) => {
    await writeFile(join(certDir, "tls.key"), keyPem);
    await writeFile(join(certDir, "tls.crt"), certPem);
  };
  const first = newPair();
  await writePair(first);
  const answered: string[] = [];
  const answer: RequestListener = (req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.on("end", () => {
      answered.push(`${req.method} ${req.url}`);
      const text = Buffer.concat(chunks).toString();
      const { request: { uid = "" } = {} } = (tryParseJson(text) ?? {}) as { request?: { uid?: string } };
      res.setHeader("content-type", "application/json");
      res.end(JSON.stringify({ response: { uid, allowed: true }, by: peer.name, bytes: text.length, headers: req.headers }));
    });
  };
  let handler = answer;
  const operator = createServer({ cert: first.certPem, key: first.keyPem }, (...args) => handler(...args));
  await new Promise<void>((resolve) => operator.listen(0, "127.0.0.1", resolve));
  const operatorPort = (operator.address() as AddressInfo).port;
  const identity = issueServerCertificate(mesh, { dnsNames: ["localhost"], clientName: podUri(peer), now: Date.now() });
  const listener = await startListener({ peer, port, operatorPort, certDir, identity, meshPem: mesh.certPem }, peers);
  const { webhooks, registry, enforcer, policies } = listener;
  let version = 0;
  const stopOperator = async () => {
    if (!operator.listening) return;
    operator.closeAllConnections();
    await new Promise((resolve) => operator.close(resolve));
  };
  return {
    peer,
    webhooks,
    registry,
    answered,
    certDir,
    serve(replacement = answer) {
      handler = replacement;
    },
    enforce(table) {
      enforcer.enforce(snapshot(table, { version: ++version, subset: peer.subset }));
    },
    limit: (...limits) => policies.enforce({ limits, faults: [], egress: [] }, "digest"),
    async rotate() {
      const pair = newPair();
      await writePair(pair);
      operator.setSecureContext({ cert: pair.certPem, key: pair.keyPem });
    },
    writePair,
    stopOperator,
    async stop() {
      await webhooks.server.stop();
      await stopOperator();
      await rm(certDir, { recursive: true });
    },
  };
}

const agent = new Agent({ keepAlive: false });

function call(
  { address }: PodPeer,
  body: object | string | undefined,
  {
    port,
    ca: caPem,
    path = "/mutate?timeout=10s", // as the API server without `timeoutSeconds`
    headers = {},
    method = "POST",
    tls = {},
  }: CallOptions & { port: number; ca: string },
): Promise<Answer> {
  const text = typeof body === "object" ? JSON.stringify(body) : (body ?? "");
  return new Promise((resolve, reject) => {
    const options = { agent, host: address, port, path, method, headers, servername: SERVICE, ca: caPem, ...tls };
    const req = request(options, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("end", () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks).toString() }));
      res.on("error", reject);
    });
    req.on("error", reject);
    req.end(text);
  });
}

/** The review of a create in a namespace. */
export function reviewOf(namespace: string, more: object = {}): object {
  return {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: `review-of-${namespace}`,
      resource: { group: "apps", version: "v1", resource: "deployments" },
      namespace,
      name: "web",
      operation: "CREATE",
      object: { metadata: { name: "web", namespace } },
      ...more,
    },
  };
}
