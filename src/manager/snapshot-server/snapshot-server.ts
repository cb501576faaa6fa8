// The gRPC side of the manager: one bidirectional stream a proxy, turned into calls of the registry. Invariant: a stream
// says nothing before its hello, is told only about its own pod, and is ended at the first message out of order.
import { Metadata, Server, type ServerCredentials, type ServerDuplexStream, status } from "@grpc/grpc-js";
import type { Clock } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import type { Logger } from "../../base/log.ts";
import { loadMeshService, MAX_MESSAGE_BYTES } from "../../wire/load-proto.ts";
import type { HelloMessage, ManagerMessage, ProxyMessage } from "../../wire/messages.ts";
import { snapshotToWire } from "../../wire/snapshot-codec.ts";
import type { ProxyRegistry, ProxyStream } from "./proxy-registry.ts";

/** Who may be served now. */
export type Admission =
  | { readonly kind: "serve" }
  /** This replica does not lead; `endpoint` is "" while nobody is known to. */
  | { readonly kind: "redirect"; readonly endpoint: string }
  | { readonly kind: "refuse"; readonly message: string };

export interface SnapshotServerOptions {
  /** host:port; port 0 takes a free one. */
  readonly listen: string;
  readonly credentials: ServerCredentials;
  readonly registry: ProxyRegistry;
  /** Decides about a proxy by its hello. */
  readonly admit: (hello: HelloMessage) => Admission;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface SnapshotServer extends Runnable {
  /** The bound port, once started. */
  readonly port: number;
}

type MeshStream = ServerDuplexStream<ProxyMessage, ManagerMessage>;

const CHANNEL_OPTIONS = {
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES, // a hello carries the enforced snapshot
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  "grpc.keepalive_time_ms": 20_000,
  "grpc.keepalive_timeout_ms": 10_000,
  "grpc.keepalive_permit_without_calls": 1,
};

// A stream that says nothing holds a place and is worth nothing.
const HELLO_TIMEOUT_MS = 10_000;
const SHUTDOWN_TIMEOUT_MS = 1_000;

export function createSnapshotServer(options: SnapshotServerOptions): SnapshotServer {
  const server = new Server(CHANNEL_OPTIONS);
  server.addService(loadMeshService(), { Connect: (stream: MeshStream) => serveStream(stream, options) });
  let port = 0;
  return {
    name: "snapshot server",
    get port() {
      return port;
    },
    async start() {
      port = await bind(server, options);
    },
    async stop() {
      options.registry.close("the manager is shutting down");
      const forced = options.clock.after(SHUTDOWN_TIMEOUT_MS, () => server.forceShutdown());
      await new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      forced.cancel();
    },
  };
}

function bind(server: Server, { listen, credentials }: SnapshotServerOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(listen, credentials, (error, bound) => {
      if (error === null) resolve(bound);
      else reject(new MeshError("LISTEN_FAILED", `listening for proxies on ${listen}`, { cause: error }));
    });
  });
}

function serveStream(stream: MeshStream, { registry, admit, clock, log }: SnapshotServerOptions): void {
  let pod: string | undefined;
  const helloDue = clock.after(HELLO_TIMEOUT_MS, () => fail(stream, status.DEADLINE_EXCEEDED, "no hello came"));
  const proxy: ProxyStream = {
    send: (snapshot, nonce) => stream.write({ snapshot: snapshotToWire(snapshot, nonce) }),
    end: (reason) => fail(stream, status.UNAVAILABLE, reason),
  };
  const close = () => {
    helloDue.cancel();
    if (pod !== undefined) registry.disconnected(pod, proxy);
    pod = undefined;
  };
  stream.on("data", (message: ProxyMessage) => {
    if (pod !== undefined) {
      takeMessage(registry, pod, proxy, message);
    } else if (!("hello" in message) || message.hello.pod === null) {
      fail(stream, status.INVALID_ARGUMENT, "the first message must be a hello that names the pod");
    } else {
      helloDue.cancel();
      const admission = admit(message.hello);
      if (admission.kind !== "serve") {
        turnAway(stream, admission);
        return;
      }
      pod = `${message.hello.pod.namespace}/${message.hello.pod.name}`;
      log.info({ pod, version: message.hello.version }, "proxy connected");
      stream.sendMetadata(new Metadata()); // tells the proxy that it is served, also when there is nothing to send it
      registry.connected(pod, message.hello, proxy);
    }
  });
  stream.on("error", close);
  stream.on("close", close);
  stream.on("end", () => {
    close();
    stream.end();
  });
}

function takeMessage(registry: ProxyRegistry, pod: string, proxy: ProxyStream, message: ProxyMessage): void {
  if ("ack" in message) registry.acked(pod, proxy, message.ack.nonce);
  else if ("nack" in message) registry.nacked(pod, proxy, message.nack);
  else if ("report" in message) registry.reported(pod, proxy, message.report);
  else if ("hello" in message) proxy.end("a stream has one hello");
  // Anything else is of a newer proxy: ignored, as the contract says.
}

function turnAway(stream: MeshStream, admission: Exclude<Admission, { kind: "serve" }>): void {
  if (admission.kind === "refuse") fail(stream, status.PERMISSION_DENIED, admission.message);
  else if (admission.endpoint === "") fail(stream, status.UNAVAILABLE, "no replica leads yet");
  else {
    stream.write({ redirect: { endpoint: admission.endpoint } });
    stream.end();
  }
}

function fail(stream: MeshStream, code: number, details: string): void {
  stream.emit("error", { code, details });
}
