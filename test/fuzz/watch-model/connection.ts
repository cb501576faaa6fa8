// One request of a client in the model test of watches. It may break before its answer, or in the middle of a stream.
import type { Handler } from "../../../src/proxy/call/call.ts";
import { discardBody, type SourceControl } from "../../../src/proxy/http/byte-stream.ts";
import type { Reply } from "../../../src/proxy/http/handler.ts";
import { callOf } from "../../support/layer-call.ts";
import type { WireEvent } from "./answers.ts";

export interface Connection {
  /** Undefined if the connection breaks before the answer. */
  get(handler: Handler, target: string, accept: string): Promise<Reply | undefined>;
  /** Reads the events of a watch until it ends or the connection breaks. */
  read(reply: Reply, onEvent: (event: WireEvent) => void): Promise<void>;
  break(): void;
}

export function createConnection(): Connection {
  const ending = new AbortController();
  const { signal } = ending;
  const broken = new Promise<undefined>((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
  return {
    async get(handler, target, accept) {
      const answered = handler(callOf("GET", target, { headers: { accept }, signal })).then(
        (reply) => {
          if (!signal.aborted) return reply;
          discardBody(reply.body);
          return undefined;
        },
        (error: unknown) => {
          if (!signal.aborted) throw error;
          return undefined;
        },
      );
      return Promise.race([answered, broken]);
    },
    read: (reply, onEvent) => Promise.race([readAll(reply, onEvent, signal), broken]),
    break: () => ending.abort(new Error("the connection is broken")),
  };
}

function readAll(reply: Reply, onEvent: (event: WireEvent) => void, signal: AbortSignal): Promise<void> {
  const take = (bytes: Uint8Array) => {
    for (const line of Buffer.from(bytes).toString("utf8").split("\n"))
      if (line !== "" && !signal.aborted) onEvent(JSON.parse(line) as WireEvent);
    return !signal.aborted;
  };
  const { body } = reply;
  if (body === null) throw new Error("a watch without a body");
  if (body instanceof Uint8Array) {
    take(body);
    return Promise.resolve();
  }
  return new Promise((resolve, reject) => {
    let control: SourceControl | undefined;
    const onBreak = () => control?.cancel(new Error("the connection is broken"));
    signal.addEventListener("abort", onBreak);
    control = body.open({
      write(chunk) {
        try {
          return take(chunk);
        } catch (error) {
          reject(error);
          return false;
        }
      },
      end: resolve,
      abort: reject,
    });
    if (signal.aborted) onBreak();
  });
}
