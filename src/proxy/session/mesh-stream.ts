// One gRPC stream to one manager replica, from Hello to its end. It knows the protocol's messages and nothing of what is
// done with them. Invariant: after `ended` nothing is sent or received any more. Called by mesh-client.
import { type ChannelCredentials, Client, type ClientDuplexStream, type ServiceDefinition } from "@grpc/grpc-js";
import { MeshError } from "../../base/errors.ts";
import { MAX_MESSAGE_BYTES } from "../../wire/load-proto.ts";
import type { ManagerMessage, ProxyMessage } from "../../wire/messages.ts";

export interface MeshStream {
  /** Sends a message; does nothing once the stream has ended. */
  send(message: ProxyMessage): void;
  /** Ends the stream from this side. */
  close(): void;
  /** Resolves when the stream is over, with the error that ended it, if any. */
  readonly ended: Promise<Error | undefined>;
}

// A dead manager is noticed within 40 s, also behind a NAT that drops idle connections.
const CHANNEL_OPTIONS = {
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 10_000,
  "grpc.keepalive_permit_without_calls": 1,
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  // Retries are the client's own, so that it can follow redirects.
  "grpc.enable_retries": 0,
  // Never through HTTP_PROXY: the manager is inside of the cluster.
  "grpc.enable_http_proxy": 0,
};

export function openMeshStream(options: {
  readonly endpoint: string;
  readonly credentials: ChannelCredentials;
  readonly service: ServiceDefinition;
  readonly hello: ProxyMessage;
  onConnected(): void;
  onMessage(message: ManagerMessage): void;
}): MeshStream {
  const method = options.service.Connect;
  if (method === undefined) throw new MeshError("PROTO_INVALID", "opening mesh stream: the service has no method Connect");
  const client = new Client(options.endpoint, options.credentials, CHANNEL_OPTIONS);
  const call: ClientDuplexStream<ProxyMessage, ManagerMessage> = client.makeBidiStreamRequest(
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
    client.close();
    resolve(error);
  };
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
    close: () => finish(),
    ended,
  };
}
