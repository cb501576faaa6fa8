// localkube: an in-memory Kubernetes API server over HTTPS, for the demo and for tests. It has no RBAC, no admission
// webhooks, no kubelet and no controllers but garbage collection; docs of each module say where it differs from the real one.
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { createCa, issueServerCertificate } from "../base/certificates.ts";
import { MeshError } from "../base/errors.ts";
import type { Runnable } from "../base/lifecycle.ts";
import { type AuditEntry, AuditLog, type AuditOptions } from "./audit.ts";
import { Authenticator } from "./auth.ts";
import { type Backend, type BackendOptions, createBackend } from "./backend.ts";
import { seed } from "./bootstrap.ts";
import { type Services, serve } from "./connection.ts";
import { serveDefinitions } from "./crd.ts";
import { GarbageCollector } from "./garbage.ts";
import { createKubeconfig } from "./kubeconfig.ts";

export interface LocalKubeOptions extends BackendOptions {
  /** Default 0: a free one. */
  readonly port?: number;
  /** Address to bind; default 127.0.0.1. */
  readonly host?: string;
  /** More names and addresses for the serving certificate. */
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
  /** Default: random. */
  readonly adminToken?: string;
  /** Between the bookmarks of a watch; default 60,000. */
  readonly bookmarkMs?: number;
  /** Longest watch; default 30 minutes. */
  readonly maxWatchMs?: number;
  /** Bytes that a watch's reader may fall behind before it is cut off; default 8 MiB. */
  readonly maxWatchBufferBytes?: number;
  readonly audit?: AuditOptions;
}

/** A running (after `start`) API server. */
export interface LocalKube extends Runnable {
  /** https://host:port; known once started. */
  readonly url: string;
  readonly caPem: string;
  /** Bearer token of a user in system:masters. */
  readonly token: string;
  readonly kubeconfigYaml: string;
  /** The newest requests, oldest first. */
  audit(): readonly AuditEntry[];
  /** Forgets history, so that old continue tokens and watches answer 410. */
  compact(): void;
  /** Ends all connections, as a restart of the API server would. */
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
  // A watch may be quiet for long: no timeout on connections but for idle keep-alive ones.
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
