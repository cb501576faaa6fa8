// Removes metadata.managedFields from the answers to get, list and watch, where the VirtualApp asks for it.
// Writes and their answers pass as they are, so that server-side apply works: an update without managedFields
// leaves those of the API server. An answer that cannot be read passes, since this layer hides nothing.
import type { CounterCell } from "../../base/metric-cells.ts";
import {
  type ByteFilter,
  createListFilter,
  DEFAULT_MAX_BYTES,
  type Emit,
  type Encoding,
  elementStripper,
  stripFrame,
  stripObject,
} from "../../kube/codec/codec.ts";
import { answersObjects } from "../../kube/request-kind.ts";
import { askUncompressed, type Handler, isResourceCall, type Layer, type ResourceCall, readableEncoding } from "../call/call.ts";
import { frameStream, lenientFilter, listStream } from "../filter/filtered-body.ts";
import { asSource, type ByteSource } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import type { Session } from "../session/session.ts";

export interface StripDeps {
  readonly session: Pick<Session, "current">;
  readonly stripped: CounterCell;
}

export function strip({ session, stripped }: StripDeps): Layer {
  return (next) => (call) => {
    if (session.current?.snapshot.callers.stripManagedFields !== true) return next(call);
    return isResourceCall(call) && readsObjects(call) ? stripReply(call, next, stripped) : next(call);
  };
}

function readsObjects({ method, info, upgrade }: ResourceCall): boolean {
  return method === "GET" && upgrade === undefined && answersObjects(info);
}

async function stripReply(call: ResourceCall, next: Handler, stripped: CounterCell): Promise<Reply> {
  const reply = await next(askUncompressed(call));
  const encoding = readableEncoding(reply);
  if (reply.status !== 200 || reply.body === null || encoding === undefined) return reply;
  const { "content-length": _, etag: __, ...headers } = reply.headers;
  return { ...reply, headers, body: strippedBody(call.info.verb, asSource(reply.body), encoding, stripped) };
}

function strippedBody(verb: string, body: ByteSource, encoding: Encoding, stripped: CounterCell): ByteSource {
  if (verb === "watch") {
    return frameStream(body, encoding, (frame) => {
      const rest = stripFrame(encoding, frame);
      stripped.value += frame.length - rest.length;
      return rest;
    });
  }
  const onDone = (bytes: number) => {
    stripped.value += bytes;
  };
  if (verb !== "list") return listStream(body, new ObjectStripper(encoding), onDone);
  const filter = createListFilter(encoding, () => true, { rewrite: elementStripper(encoding), keepsAll: true });
  return listStream(body, lenientFilter(filter), onDone);
}

/** Strips a body of one object. A larger body than any object passes as it is, so that memory is bounded. */
export class ObjectStripper implements ByteFilter {
  readonly #encoding: Encoding;
  readonly #maxBytes: number;
  /** Undefined once the body has turned out to be too large. */
  #held: Uint8Array[] | undefined = [];
  #bytes = 0;

  /** @param maxBytes default 16 MiB */
  constructor(encoding: Encoding, maxBytes = DEFAULT_MAX_BYTES) {
    this.#encoding = encoding;
    this.#maxBytes = maxBytes;
  }

  get heldBytes(): number {
    return this.#held === undefined ? 0 : this.#bytes;
  }

  push(chunk: Uint8Array, emit: Emit): void {
    if (this.#held === undefined) {
      emit(chunk);
      return;
    }
    this.#held.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#maxBytes) return;
    for (const held of this.#held) emit(held);
    this.#held = undefined;
  }

  end(emit: Emit): void {
    if (this.#held === undefined || this.#bytes === 0) return;
    const [first = new Uint8Array()] = this.#held;
    emit(stripObject(this.#encoding, this.#held.length === 1 ? first : Buffer.concat(this.#held)));
  }
}
