// The gRPC service for proxies, and the bounds on HTTP/2 under it. Invariant: no proxy, however slow or
// noisy, delays the others.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { Server, type ServerReadableStream, type sendUnaryData, status } from "@grpc/grpc-js";
import { type ClientPace, createClientPace } from "../../base/client-pace.ts";
import type { Clock } from "../../base/clock.ts";
import { keepCompact } from "../../base/compact-body.ts";
import { createFairTurns } from "../../base/fair-turns.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { ListenAddress } from "../../base/listener.ts";
import type { CertificateReplyMessage, CertificateRequestMessage } from "../../mesh/contract/messages.ts";
import { podKey } from "../../mesh/handover/proxy-facts.ts";
import { CERTIFY, CONNECT, MAX_MESSAGE_BYTES } from "../../wire/load-proto.ts";
import type { ServerSecurity } from "../identity/add.ts";
import { hostOf, type Identify } from "../identity/identify.ts";
import type { PodIdentity } from "../identity/token-reviewer.ts";
import { createProxyListener } from "./proxy-listener.ts";
import { type ProxyStreamDeps, type ServerStream, serveProxyStream } from "./proxy-stream.ts";
import { createRegistrationTables } from "./registration-tables.ts";
import { encodeUpdatesOnce } from "./shared-resources.ts";

type StreamOptions = Pick<ProxyStreamDeps, "registry" | "leaderElsewhere" | "judge" | "leadership" | "clock" | "log">;

interface MeshServerOptions extends StreamOptions {
  readonly listen: ListenAddress;
  /** Default: none, and plain text. */
  readonly security?: ServerSecurity;
  /** The names of the existing namespaces; default: not known. */
  readonly namespaces?: () => readonly string[];
  readonly maxUnproved?: number;
}

export interface MeshServer extends Runnable {
  /** The bound port, once started. */
  readonly port: number;
}

const CHANNEL_OPTIONS = {
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES, // a promise may carry tables
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  // A proxy has one stream; while it comes back, two.
  "grpc.max_concurrent_streams": 2,
  // A proxy that is gone or stopped is noticed within 20 s.
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 10_000,
  "grpc.keepalive_permit_without_calls": 1,
};

/**
 * The limit for the registrations of one pod, and for its Certify calls. A proxy retries after 0.1 to 3 s.
 */
const REGISTRATIONS = { perSecond: 2, burst: 10 };

const SHUTDOWN_TIMEOUT_MS = 1_000;

/**
 * Certify is unary. As a stream of requests it has the same bytes, and none is read before the caller is
 * known.
 */
const SERVICE = {
  Connect: { ...CONNECT, responseSerialize: encodeUpdatesOnce(CONNECT.responseSerialize) },
  Certify: { ...CERTIFY, requestStream: true },
};

export function createMeshServer(options: MeshServerOptions): MeshServer {
  const { registry, clock, security, listen, maxUnproved } = options;
  const grpc = new Server(CHANNEL_OPTIONS);
  const tls = security && {
    identity: security.identity,
    onRefused: (address: string, why: string) => security.rejections.reject("handshake", address, why),
  };
  const listener = createProxyListener({ grpc, listen, clock, maxUnproved, ...(tls && { tls }) });
  const identify: Identify | undefined =
    security &&
    (async (metadata, peer) => {
      listener.asked(peer);
      const verdict = await security.identify(metadata, peer);
      if (verdict.kind === "pod") listener.proved(peer, verdict.pod.uid);
      if (verdict.kind === "refuse") listener.refused(peer);
      return verdict;
    });
  const deps = {
    ...options,
    registrations: createClientPace({ ...REGISTRATIONS, clock }),
    tables: createRegistrationTables({ clock, tables: registry.tables, namespaces: options.namespaces }),
    turns: createFairTurns({ clock }),
    cut: listener.cut,
    ...(identify && { identify }),
    ...(security && { rejections: security.rejections }),
  };
  const certifying = security &&
    identify && { ...security, identify, calls: createClientPace({ ...REGISTRATIONS, clock }), clock };
  grpc.addService(SERVICE, {
    Connect: (stream: ServerStream) => serveProxyStream(stream, deps),
    Certify: (...call: CertifyCall) => serveCertify(call, certifying),
  });
  const onStream = createStreamGuard(clock);
  let port = 0;
  return {
    name: "mesh server",
    get port() {
      return port;
    },
    async start() {
      subscribe(STREAM_CREATED, onStream);
      port = await listener.listen();
    },
    async stop() {
      unsubscribe(STREAM_CREATED, onStream);
      registry.close("the manager is shutting down");
      await listener.close(SHUTDOWN_TIMEOUT_MS);
    },
  };
}

/** Node reports each stream before any of its body has come. gRPC offers no other access to the streams. */
const STREAM_CREATED = "http2.server.stream.created";

/** The limit for new calls on one connection. */
const CALLS = { perSecond: 5, burst: 32 };

function createStreamGuard(clock: Clock): (message: unknown) => void {
  const calls = new WeakMap<ServerHttp2Session, ClientPace>();
  return (message) => {
    const { stream } = message as { readonly stream: ServerHttp2Stream };
    const session = stream.session as ServerHttp2Session | undefined;
    if (session === undefined) return;
    const cut = () => session.destroy();
    keepCompact(stream, cut);
    const pace = calls.get(session) ?? createClientPace({ ...CALLS, clock });
    calls.set(session, pace);
    if (!pace.allow("", 1)) setImmediate(cut); // not while the stream is made
  };
}

type CertifyCall = readonly [
  call: ServerReadableStream<CertificateRequestMessage, CertificateReplyMessage>,
  callback: sendUnaryData<CertificateReplyMessage>,
];

interface CertifyDeps extends Pick<ServerSecurity, "identify" | "certify" | "rejections"> {
  readonly calls: Pick<ClientPace, "allow">;
  readonly clock: Clock;
}

const REQUEST_TIMEOUT_MS = 10_000;

/** Reads nothing before the caller is identified. @param deps undefined without mesh identity */
function serveCertify([call, callback]: CertifyCall, deps: CertifyDeps | undefined): void {
  let isAnswered = false;
  const answer = (code: number, details: string) => {
    if (isAnswered) return;
    isAnswered = true;
    callback({ code, details });
  };
  call.on("error", () => answer(status.CANCELLED, "the call has failed"));
  if (deps === undefined) {
    answer(status.UNIMPLEMENTED, "this manager has no mesh identity (CTRLMESH_IDENTITY=none)");
    return;
  }
  const { identify, certify, rejections, calls, clock } = deps;

  const take = async (caller: PodIdentity, request: CertificateRequestMessage) => {
    const result = await certify(caller, request.publicKey);
    if (result.kind === "wait") return answer(status.UNAVAILABLE, result.message);
    if (result.kind === "refuse") {
      rejections.reject(result.reason, podKey(caller), result.message);
      return answer(result.reason === "bad-request" ? status.INVALID_ARGUMENT : status.PERMISSION_DENIED, result.message);
    }
    if (isAnswered) return;
    isAnswered = true;
    callback(null, result.reply);
  };
  const serve = async () => {
    const verdict = await identify(call.metadata, call.getPeer());
    if (verdict.kind === "wait") return answer(status.UNAVAILABLE, verdict.message);
    if (verdict.kind === "refuse") return answer(status.UNAUTHENTICATED, verdict.message);
    if (!calls.allow(podKey(verdict.pod), 1)) return answer(status.RESOURCE_EXHAUSTED, "the pod asks for certificates too often");
    const due = clock.after(REQUEST_TIMEOUT_MS, () => answer(status.DEADLINE_EXCEEDED, "no request came"));
    call.once("data", (request: CertificateRequestMessage) => {
      due.cancel();
      call.pause();
      take(verdict.pod, request).catch(fail);
    });
    call.once("close", () => due.cancel());
  };
  const fail = () => answer(status.INTERNAL, `certifying a key from ${hostOf(call.getPeer())} failed`);
  serve().catch(fail);
}
