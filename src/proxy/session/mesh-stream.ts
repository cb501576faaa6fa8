// One gRPC stream to one manager replica, from Hello to its end. It knows the protocol's messages and nothing of what is
// done with them. Invariant: after `ended` nothing is sent or received any more. Called by mesh-client.
import { type ChannelCredentials, Client, type ClientDuplexStream, type ServiceDefinition } from "@grpc/grpc-js";
import { MeshError } from "../../base/errors.ts";
import { MAX_MESSAGE_BYTES } from "../../wire/load-proto.ts";
import type { ManagerMessage, ProxyMessage } from "../../wire/messages.ts";

export interface MeshStream {
  /** Sends a message; does nothing once the stream has ended. */
  send(message: ProxyMessage): void;
  /** Ends the stream from this side; the error is what `ended` tells. */
  close(error?: Error): void;
  /** Resolves when the stream is over, with the error that ended it, if any. */
  readonly ended: Promise<Error | undefined>;
}

/**
 * A manager that is gone without a word (a stopped process, a lost node, a cut network) is noticed within the sum of the two, in
 * milliseconds: before its lease of 15 s is over, so that proxies look for the next leader when there is one. A thousand proxies send
 * their manager 200 pings a second, which its HTTP/2 library answers. Five seconds are longer than a manager may be busy.
 */
export const KEEPALIVE = { everyMs: 5_000, timeoutMs: 5_000 };

const CHANNEL_OPTIONS = {
  "grpc.keepalive_time_ms": KEEPALIVE.everyMs,
  "grpc.keepalive_timeout_ms": KEEPALIVE.timeoutMs,
  "grpc.keepalive_permit_without_calls": 1,
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  // Whoever opens a connection anew wants another one: the service may lead to another replica.
  "grpc.use_local_subchannel_pool": 1,
  // Retries are the client's own, so that it can follow redirects.
  "grpc.enable_retries": 0,
  // Never through HTTP_PROXY: the manager is inside of the cluster.
  "grpc.enable_http_proxy": 0,
};

/** A connection to one replica, once it is up; kept by whoever opened it. */
export type MeshChannel = Pick<Client, "close" | "waitForReady" | "makeBidiStreamRequest">;

export function openMeshChannel(endpoint: string, credentials: ChannelCredentials): MeshChannel {
  return new Client(endpoint, credentials, CHANNEL_OPTIONS);
}

export interface MeshStreamOptions {
  readonly channel: MeshChannel;
  readonly service: ServiceDefinition;
  readonly hello: ProxyMessage;
  /** A living process is at the other end: it has answered the handshake. A stopped one's kernel accepts connections still. */
  onReachable(): void;
  /** The manager has taken the hello. */
  onConnected(): void;
  onMessage(message: ManagerMessage): void;
}

export function openMeshStream(options: MeshStreamOptions): MeshStream {
  const method = options.service.Connect;
  if (method === undefined) throw new MeshError("PROTO_INVALID", "opening mesh stream: the service has no method Connect");
  const { channel } = options;
  const call: ClientDuplexStream<ProxyMessage, ManagerMessage> = channel.makeBidiStreamRequest(
    method.path,
    (message: ProxyMessage) => method.requestSerialize(message),
    (bytes: Buffer) => method.responseDeserialize(bytes) as ManagerMessage,
  );
  let over = false;
  const { promise: ended, resolve } = Promise.withResolvers<Error | undefined>();
  const finish = (error?: Error) => {
    if (over) return;
    over = true;
    call.cancel();
    resolve(error);
  };
  channel.waitForReady(Number.POSITIVE_INFINITY, (error) => {
    if (!over && error === undefined) options.onReachable();
  });
  call.on("metadata", () => {
    if (!over) options.onConnected();
  });
  call.on("data", (message: ManagerMessage) => {
    if (!over) options.onMessage(message);
  });
  call.on("error", finish); // stays attached: `cancel` reports an error as well
  call.on("end", () => finish());
  call.write(options.hello);
  return {
    send(message) {
      if (!over) call.write(message);
    },
    close: finish,
    ended,
  };
}
