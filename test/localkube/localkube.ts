// localkube: an in-memory Kubernetes API server over HTTPS, for the demo and for tests. It has no RBAC, no admission webhooks, no
// kubelet, and no controller but garbage collection. The head of each module says where it differs from the real server.
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { MeshError } from "../../src/base/errors.ts";
import type { Runnable } from "../../src/base/lifecycle.ts";
import { type AuditEntry, AuditLog, type AuditOptions } from "./audit.ts";
import { Authenticator } from "./auth.ts";
import { type Backend, type BackendOptions, createBackend } from "./backend.ts";
import { seed } from "./bootstrap.ts";
import { type Services, serve } from "./connection.ts";
import { serveDefinitions } from "./crd.ts";
import { GarbageCollector } from "./garbage.ts";
import { createKubeconfig } from "./kubeconfig.ts";

export interface LocalKubeOptions extends BackendOptions {
  /** The default is 0: any free port. */
  readonly port?: number;
  /** Address to bind; the default is 127.0.0.1. */
  readonly host?: string;
  /** More names and addresses for the serving certificate. */
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  /** Random by default. */
  readonly adminToken?: string;
  /** Time between two bookmarks of a watch; the default is 60,000. */
  readonly bookmarkMs?: number;
  /** Longest duration of a watch; the default is 30 minutes. */
  readonly maxWatchMs?: number;
  /** How many bytes a watch may buffer for a slow reader before it is cut off; the default is 8 MiB. */
  readonly maxWatchBufferBytes?: number;
  readonly audit?: AuditOptions;
}

/** An API server. It runs after `start`. */
export interface LocalKube extends Runnable {
  /** https://host:port, available after `start`. */
  readonly url: string;
  readonly caPem: string;
  /** Bearer token of a user in system:masters. */
  readonly token: string;
  readonly kubeconfigYaml: string;
  /** The newest requests, oldest first. */
  audit(): readonly AuditEntry[];
  /** Drops the history, so that old continue tokens and watches answer 410. */
  compact(): void;
  /** Closes all connections, as a restart of the API server does. */
  dropConnections(): void;
}

export function createLocalKube(options: LocalKubeOptions = {}): LocalKube {
  const backend = createBackend(options);
  const auth = new Authenticator(backend, options.adminToken);
  const audit = new AuditLog(options.audit);
  const garbage = new GarbageCollector(backend);
  serveDefinitions(backend);
  const ca = createCa({ commonName: "localkube", now: backend.clock.now() });
  const server = createServerFor(backend, ca, options);
  const host = options.host ?? "127.0.0.1";
  const address = () => {
    const bound = server.address() as AddressInfo | null;
    if (bound === null) throw new MeshError("NOT_STARTED", "reading the address of localkube: not started");
    return `${host}:${bound.port}`;
  };
  const services: Services = {
    backend,
    auth,
    audit,
    address,
    timing: { clock: backend.clock, bookmarkMs: options.bookmarkMs ?? 60_000, maxMs: options.maxWatchMs ?? 30 * 60_000 },
    maxBufferBytes: options.maxWatchBufferBytes ?? 8 * 1024 * 1024,
  };
  server.on("request", (request: IncomingMessage, response) => void serve(services, request, response));
  return {
    name: "localkube",
    async start() {
      seed(backend);
      await listen(server, options.port ?? 0, host);
    },
    async stop() {
      garbage.stop();
      await close(server);
    },
    get url() {
      return `https://${address()}`;
    },
    caPem: ca.certPem,
    token: auth.adminToken,
    get kubeconfigYaml() {
      return createKubeconfig({ server: `https://${address()}`, caPem: ca.certPem, token: auth.adminToken });
    },
    audit: () => audit.entries(),
    compact: () => backend.store.compact(),
    dropConnections: () => server.closeAllConnections(),
  };
}

function createServerFor(backend: Backend, ca: { certPem: string; keyPem: string }, options: LocalKubeOptions): Server {
  const leaf = issueServerCertificate(ca, {
    commonName: "kube-apiserver",
    dnsNames: ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", ...(options.dnsNames ?? [])],
    ipAddresses: [options.host ?? "127.0.0.1", ...(options.ipAddresses ?? [])],
    now: backend.clock.now(),
  });
  // A watch may be idle for long, so only idle keep-alive connections time out.
  return createServer({ cert: leaf.certPem, key: leaf.keyPem, keepAliveTimeout: 90_000, noDelay: true });
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (!server.listening) resolve();
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
