// A proxy process with its forward proxy, and servers on loopback that operators call through it.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { createListener } from "../../src/base/listener.ts";
import type { EgressRule, FaultRule, LimitRule, PolicySet } from "../../src/policy/policy.ts";
import { OWN_A, type PolicedProxy, startPolicedProxy } from "./policed-proxy.ts";

export interface EgressWorld {
  readonly proxy: PolicedProxy;
  /** URL of the forward proxy. */
  readonly url: string;
  /** Plain HTTP, on localhost. */
  readonly http: Origin;
  /** TLS for the names localhost and other.example and the address 127.0.0.1. */
  readonly https: Origin;
  /** The CA of `https`. */
  readonly caFile: string;
  /** Enforces these rules. Each call gives them a state of their own. */
  enforce(set: Partial<PolicySet>): Promise<void>;
  /** Requests to other servers that had this result. */
  counted(result: string): Promise<number>;
  /** Tunnels and requests that are open now. */
  open(): Promise<number>;
  stop(): Promise<void>;
}

export interface Origin {
  readonly port: number;
  /** What has come, oldest first. */
  readonly requests: { readonly method: string; readonly url: string; readonly headers: IncomingMessage["headers"] }[];
  /** Answers the requests; by default with their method and URL. */
  serve: (req: IncomingMessage, res: ServerResponse) => void;
}

export interface EgressWorldOptions {
  /** The default lets the proxy reach the servers. */
  readonly privateAddresses?: string;
  /** Sends routes and policies at the beginning; default true. */
  readonly isReady?: boolean;
}

export async function startEgressWorld({
  privateAddresses = "127.0.0.0/8,::1/128",
  isReady = true,
}: EgressWorldOptions = {}): Promise<EgressWorld> {
  const dir = await mkdtemp(join(tmpdir(), "egress-"));
  const now = Date.now();
  const ca = createCa({ commonName: "egress test", now });
  const names = { dnsNames: ["localhost", "other.example"], ipAddresses: ["127.0.0.1"], now };
  const { certPem, keyPem } = issueServerCertificate(ca, names);
  const caFile = join(dir, "ca.crt");
  await writeFile(caFile, ca.certPem);
  const [http, https] = await Promise.all([
    startOrigin((handler) => createServer(handler)),
    startOrigin((handler) => createHttpsServer({ cert: certPem, key: keyPem }, handler)),
  ]);
  const flags = { "egress-listen": "127.0.0.1:0", "egress-private-addresses": privateAddresses };
  const proxy = await startPolicedProxy(["policy"], { flags, env: { NODE_EXTRA_CA_CERTS: caFile } });
  let sets = 0;
  const world: EgressWorld = {
    proxy,
    url: proxy.egressUrl,
    http,
    https,
    caFile,
    async enforce({ limits = [], faults = [], egress = [] }) {
      const uid = `uid-${++sets}`;
      const own = <R extends LimitRule | FaultRule | EgressRule>(rule: R): R => ({ ...rule, origin: { ...rule.origin, uid } });
      await proxy.enforce({ limits: limits.map(own), faults: faults.map(own), egress: egress.map(own) });
    },
    counted: async (result) => (await proxy.metrics()).sum("ctrlmesh_proxy_egress_total", { result }),
    open: async () => (await proxy.metrics()).sum("ctrlmesh_proxy_egress_open"),
    async stop() {
      await proxy.stop();
      await Promise.all([http.close(), https.close()]);
      await rm(dir, { recursive: true });
    },
  };
  if (isReady) {
    await proxy.route(OWN_A);
    await world.enforce({});
  }
  return world;
}

/** What a client program has printed. */
export interface ClientRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a client to its end. Its environment is this and nothing else but the PATH. */
export function runClient(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ClientRun> {
  return new Promise((resolve, reject) => {
    const options = { env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...env }, timeout: 40_000 };
    execFile(command, args, options, (error, stdout, stderr) => {
      if (error === null) resolve({ code: 0, stdout, stderr });
      else if (typeof error.code === "number") resolve({ code: error.code, stdout, stderr });
      else reject(error);
    });
  });
}

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

async function startOrigin(create: (handler: Handler) => Server): Promise<Origin & { close(): Promise<void> }> {
  const requests: Origin["requests"] = [];
  const server = create((req, res) => {
    requests.push({ method: req.method ?? "", url: req.url ?? "", headers: req.headers });
    origin.serve(req, res);
  });
  const listener = createListener(server, "connection");
  const { port }: AddressInfo = await listener.listen({ host: "127.0.0.1", port: 0 });
  const origin = {
    port,
    requests,
    serve: (req: IncomingMessage, res: ServerResponse) => void res.end(`${req.method} ${req.url}`),
    close: () => listener.close(),
  };
  return origin;
}
