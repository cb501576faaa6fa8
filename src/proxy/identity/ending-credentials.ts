// Credentials of one channel that end with the channel. gRPC leaves a connection open if its channel is closed during the TLS handshake,
// and that connection holds one of the manager's places: when a thousand proxies give a busy manager up, no other proxy gets in.
// Invariant: after `end` no connection of the channel is in a handshake. manager-channel.ts uses it.
import type { Socket } from "node:net";
import { ChannelCredentials, type experimental } from "@grpc/grpc-js";

type Connector = experimental.SecureConnector;

export class EndingCredentials extends ChannelCredentials {
  readonly #inner: ChannelCredentials;
  readonly #handshakes = new Set<Socket>();
  readonly #sockets = new Set<Socket>();
  #isOver = false;

  constructor(inner: ChannelCredentials) {
    super();
    this.#inner = inner;
  }

  /** @param isUp gRPC itself ends a connection that is up, after its last message */
  end(isUp: boolean): void {
    this.#isOver = true;
    for (const socket of isUp ? this.#handshakes : this.#sockets) socket.destroy();
  }

  override _isSecure(): boolean {
    return this.#inner._isSecure();
  }

  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(...how: Parameters<ChannelCredentials["_createSecureConnector"]>): Connector {
    const inner = this.#inner._createSecureConnector(...how);
    return {
      connect: (socket) => this.#connect(inner, socket),
      waitForReady: () => inner.waitForReady(),
      getCallCredentials: () => inner.getCallCredentials(),
      destroy: () => inner.destroy(),
    };
  }

  // After the end the promise stays pending: upon an error gRPC would try again for some seconds.
  #connect(inner: Connector, socket: Socket): ReturnType<Connector["connect"]> {
    if (this.#isOver) socket.destroy();
    else this.#keep(socket);
    return new Promise((resolve, reject) => {
      if (this.#isOver) return;
      inner
        .connect(socket)
        .finally(() => this.#handshakes.delete(socket))
        .then(
          (result) => this.#isOver || resolve(result),
          (error: unknown) => this.#isOver || reject(error),
        );
    });
  }

  #keep(socket: Socket): void {
    this.#handshakes.add(socket);
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
