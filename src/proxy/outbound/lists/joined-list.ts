// The body of one list that is made of several, in their order. Invariants: a list that fails or cannot be
// joined breaks the body; a full reader stops the list that is being read.
import type { MemoryHold } from "../../../base/fair-memory.ts";
import type { Emit, Keep, ListJoiner } from "../../../kube/codec/codec.ts";
import { type ByteSource, cutForMemory, type SourceControl } from "../../http/byte-stream.ts";
import { asError } from "../../http/tap.ts";

export interface JoinedListOptions {
  /** The body has the list of each, in this order. */
  readonly namespaces: readonly string[];
  readonly ask: (namespace: string) => Promise<ByteSource>;
  readonly keepOf: (namespace: string) => Keep;
  readonly joiner: ListJoiner;
  /** Called once when the body is over, however it ends, with the error that broke it. */
  readonly onDone: (counts: JoinedCounts, error: Error | undefined) => void;
}

type JoinedCounts = Readonly<Record<"readBytes" | "writtenBytes" | "kept" | "dropped", number>>;

const LISTS_AT_A_TIME = 4;

/** @returns a body that asks for nothing before it is opened */
export function joinedList({ namespaces, ask, keepOf, joiner, onDone }: JoinedListOptions): ByteSource {
  let [readBytes, writtenBytes, kept, dropped] = [0, 0, 0, 0];
  let isOver = false;
  let hold: MemoryHold | undefined;
  const finish = (error?: Error) => {
    if (isOver) return false;
    isOver = true;
    hold?.end();
    onDone({ readBytes, writtenBytes, kept, dropped }, error);
    return true;
  };
  return {
    cancel: () => void finish(),
    open(sink) {
      const bodies: Promise<ByteSource>[] = [];
      let at = 0;
      let isWanted = true;
      /** The reader is full between two lists. */
      let isPaused = false;
      let control: SourceControl | undefined;

      const giveUp = (error: Error) => {
        control?.cancel(error);
        for (const body of bodies.slice(control === undefined ? at : at + 1)) body.then((it) => it.cancel(error), ignore);
      };
      const fail = (thrown: unknown) => {
        const error = asError(thrown);
        if (!finish(error)) return;
        giveUp(error);
        sink.abort(error);
      };
      const emit: Emit = (slice) => {
        if (isOver) return;
        writtenBytes += slice.length;
        if (!sink.write(slice)) isWanted = false;
      };
      const read = (body: ByteSource, namespace: string) => {
        if (isOver) return;
        const filter = joiner.next(keepOf(namespace));
        hold ??= body.share?.hold(() => fail(cutForMemory()));
        control = body.open({
          write(chunk) {
            if (isOver) return false;
            isWanted = true;
            readBytes += chunk.length;
            attempt(() => filter.push(chunk, emit));
            if (!isOver) hold?.set(filter.heldBytes);
            return isWanted && !isOver;
          },
          end() {
            attempt(() => filter.end(emit));
            if (isOver) return;
            kept += filter.counts.kept;
            dropped += filter.counts.dropped;
            at++;
            control = undefined;
            if (isWanted) next();
            else isPaused = true;
          },
          abort: fail,
        });
      };
      const next = () => {
        for (const namespace of namespaces.slice(bodies.length, at + LISTS_AT_A_TIME)) {
          const body = ask(namespace);
          body.catch(ignore);
          bodies.push(body);
        }
        const [body, namespace] = [bodies[at], namespaces[at]];
        if (body !== undefined && namespace !== undefined) {
          body.then((it) => read(it, namespace)).catch(fail);
          return;
        }
        attempt(() => joiner.end(emit));
        if (finish()) sink.end();
      };
      const attempt = (run: () => void) => {
        try {
          run();
        } catch (error) {
          fail(error);
        }
      };
      queueMicrotask(() => {
        if (!isOver) next();
      });
      return {
        resume() {
          isWanted = true;
          if (!isPaused) {
            control?.resume();
            return;
          }
          isPaused = false;
          next();
        },
        cancel(error) {
          if (finish()) giveUp(error);
        },
      };
    },
  };
}

function ignore(): void {}
