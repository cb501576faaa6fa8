// One gRPC stream to one manager replica. Invariant: after `ended` nothing is sent or received.
import type { ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import type { ManagerMessage, ProxyMessage } from "../../mesh/contract/messages.ts";
import { CONNECT } from "../../wire/load-proto.ts";
import type { ManagerChannel } from "../identity/manager-channel.ts";

export type MeshStream = ReturnType<typeof openMeshStream>;

export interface MeshStreamOptions {
  readonly channel: ManagerChannel;
  readonly metadata: Metadata;
  readonly registration: ProxyMessage;
  readonly method?: typeof CONNECT;
  /** The other process has answered the handshake; the kernel of a stopped one only accepts connections. */
  onReachable(): void;
  onConnected(): void;
  onMessage(message: ManagerMessage): void;
}

export function openMeshStream(options: MeshStreamOptions) {
  const { channel, method = CONNECT } = options;
  const call: ClientDuplexStream<ProxyMessage, ManagerMessage> = channel.makeBidiStreamRequest(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    options.metadata,
  );
  let isOver = false;
  const { promise: ended, resolve } = Promise.withResolvers<Error | undefined>();
  const finish = (error?: Error) => {
    if (isOver) return;
    isOver = true;
    call.cancel();
    resolve(error);
  };
  channel.waitForReady(Number.POSITIVE_INFINITY, (error) => {
    if (!isOver && error === undefined) options.onReachable();
  });
  call.on("metadata", () => {
    if (!isOver) options.onConnected();
  });
  call.on("data", (message: ManagerMessage) => {
    if (!isOver) options.onMessage(message);
  });
  call.on("error", finish); // stays attached: `cancel` reports an error as well
  call.on("end", () => finish());
  call.write(options.registration);
  return {
    /** Does nothing once the stream has ended. */
    send(message: ProxyMessage): void {
      if (!isOver) call.write(message);
    },
    /** `ended` resolves with the error. */
    close: finish,
    /** Resolves with the error that ended the stream, if any. */
    ended,
  };
}
