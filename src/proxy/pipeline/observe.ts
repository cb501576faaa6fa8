// Metrics and the access log, at the head and at the end of each answer. Invariant: changes nothing; every call is
// counted once, also a failed one, with the code that `rescue` will answer. Off the byte path: one call a chunk.
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { ProxyMetrics } from "../metrics.ts";
import type { ByteSource } from "./byte-stream.ts";
import { answerTo, isAborted } from "./error-status.ts";
import type { CallRecord, RawCall, RawLayer } from "./handler.ts";

/** The code that is counted when the client went away before there was an answer (as nginx does). */
const CLIENT_GONE = 499;

export interface ObserveOptions {
  readonly metrics: ProxyMetrics;
  readonly clock: Clock;
  /** Where each request is logged; undefined turns the access log off. */
  readonly accessLog: Logger | undefined;
}

/** Counts, measures and logs. */
export function observe({ metrics, clock, accessLog }: ObserveOptions): RawLayer {
  return (next) => async (call) => {
    const { record } = call;
    const started = clock.monotonicMs();
    const secondsSince = () => (clock.monotonicMs() - started) / 1000;
    const done = (code: number, bytes: number) => accessLog?.info(accessFields(call, code, bytes, secondsSince()), "request");
    try {
      const reply = await next(call);
      metrics.replied(record, reply.status, secondsSince());
      const watch = isWatch(record);
      const end = (bytes: number) => {
        if (watch) metrics.watchClosed();
        else metrics.finished(record, secondsSince());
        done(reply.status, bytes);
      };
      if (watch) metrics.watchOpened();
      if (reply.body === null || reply.body instanceof Uint8Array) {
        end(reply.body?.length ?? 0);
        return reply;
      }
      return { ...reply, body: countedSource(reply.body, end) };
    } catch (error) {
      const code = isAborted(error) && call.signal.aborted ? CLIENT_GONE : answerTo(error, call.method).status.code;
      metrics.replied(record, code, secondsSince());
      done(code, 0);
      throw error;
    }
  };
}

function isWatch({ info }: CallRecord): boolean {
  return info?.kind === "resource" && info.verb === "watch";
}

/** The source, with `end` called once, however the body ends, with the number of its bytes. */
export function countedSource(source: ByteSource, end: (bytes: number) => void): ByteSource {
  let bytes = 0;
  let over = false;
  const finish = () => {
    if (over) return;
    over = true;
    end(bytes);
  };
  return {
    open(sink) {
      const control = source.open({
        write(chunk) {
          bytes += chunk.length;
          return sink.write(chunk);
        },
        end() {
          sink.end();
          finish();
        },
        abort(error) {
          sink.abort(error);
          finish();
        },
      });
      return {
        resume: () => control.resume(),
        cancel(error) {
          control.cancel(error);
          finish();
        },
      };
    },
    cancel(error) {
      source.cancel(error);
      finish();
    },
  };
}

function accessFields({ method, record }: RawCall, code: number, bytes: number, seconds: number): object {
  const { info, decision, plan, lock } = record;
  const about = info?.kind === "resource" ? resourceFields(info) : { path: info?.path };
  return { method, code, bytes, seconds, decision, plan, lock, ...about };
}

function resourceFields(info: {
  verb: string;
  group: string;
  resource: string;
  subresource: string;
  namespace: string;
  name: string;
}): object {
  const { verb, group, resource, subresource, namespace, name } = info;
  return { verb, group, resource, subresource, namespace, name };
}
