// A stream between a model proxy and a manager's real stream handling, as the bytes that would pass. Nothing arrives by itself.
// Invariant: messages of one direction keep their order; what is not yet delivered can be lost with the stream, never changed.
import { EventEmitter } from "node:events";
import type { ServerStream } from "../../src/manager/server/proxy-stream.ts";
import type { ManagerMessage, ProxyMessage } from "../../src/mesh/contract/messages.ts";
import { CONNECT as METHOD } from "../../src/wire/load-proto.ts";

interface Down {
  /** Undefined: the manager has ended the stream. */
  readonly bytes: Buffer | undefined;
  readonly written: () => void;
}

export class ModelStream extends EventEmitter {
  readonly down: Down[] = [];
  /** Undefined: the proxy has ended the stream. */
  readonly up: (Buffer | undefined)[] = [];
  #isClosed = false;

  constructor() {
    super();
    this.setMaxListeners(0);
    this.on("error", () => this.down.push({ bytes: undefined, written: () => undefined }));
  }

  /** As the manager's code takes it: of a gRPC stream it uses these methods alone. */
  get asServed(): ServerStream {
    return this as unknown as ServerStream;
  }

  write(message: ManagerMessage, written: () => void): void {
    this.down.push({ bytes: METHOD.responseSerialize(message), written });
  }

  sendMetadata(): void {}

  getPeer(): string {
    return "";
  }

  /** The manager's side ends, in order. */
  end(): void {
    this.down.push({ bytes: undefined, written: () => undefined });
  }

  say(message: ProxyMessage): void {
    this.up.push(METHOD.requestSerialize(message));
  }

  hangUp(): void {
    this.down.length = 0;
    this.up.push(undefined);
  }

  /** The manager takes the oldest of what the proxy has said. @param again it will take the same once more */
  arrive(again: boolean): void {
    const bytes = again ? this.up[0] : this.up.shift();
    if (this.#isClosed) return;
    if (bytes === undefined) this.close();
    else this.emit("data", METHOD.requestDeserialize(bytes) as ProxyMessage);
  }

  /** The oldest of what the manager has said; "end" if it has ended the stream. @param again it will be there once more */
  take(again: boolean): ManagerMessage | "end" | undefined {
    const next = again ? this.down[0] : this.down.shift();
    if (next === undefined) return undefined;
    next.written();
    return next.bytes === undefined ? "end" : (METHOD.responseDeserialize(next.bytes) as ManagerMessage);
  }

  /** The manager notices that the connection is gone. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.emit("close");
    this.removeAllListeners();
    this.on("error", () => undefined);
  }

  /** The network breaks, and both sides notice: what is on its way is lost. */
  cut(): void {
    this.down.length = 0;
    this.up.length = 0;
    this.close();
  }
}
