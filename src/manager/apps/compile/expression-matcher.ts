// The main thread's side of match-thread.ts. Invariant: every question is answered, even if the thread ends.
// The thread starts with the first question and does not keep the process alive.
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { onAbort } from "../../../base/abort.ts";
import { MeshError } from "../../../base/errors.ts";
import type { MatchAnswer, MatchCancellation, MatchQuestion } from "./match-thread.ts";
import type { Matches } from "./route-spec.ts";

/**
 * Undefined beyond the limit, or if the signal fires first.
 * @param limitMs of computing; other questions do not count
 * @throws MeshError `MATCHING_FAILED` if the thread has ended
 */
export type MatchExpressions = (
  expressions: readonly string[],
  names: readonly string[],
  limitMs: number,
  signal?: AbortSignal,
) => Promise<Matches | undefined>;

/** Of the thread: the automata of six running jobs and their work space, with room to spare. */
const MAX_HEAP_MB = 128;

export function createExpressionMatcher(): MatchExpressions {
  const waiting = new Map<number, PromiseWithResolvers<MatchAnswer>>();
  let thread: Worker | undefined;
  let lastId = 0;

  const fail = (cause: unknown) => {
    thread = undefined; // the next question starts another
    const error = new MeshError("MATCHING_FAILED", "matching expressions with names: the thread has ended", { cause });
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
  };
  const start = () => {
    const file = new URL(`./match-thread${extname(import.meta.url)}`, import.meta.url);
    const worker = new Worker(file, { execArgv: [], resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } });
    worker.on("message", (answer: MatchAnswer) => {
      waiting.get(answer.id)?.resolve(answer);
      waiting.delete(answer.id);
    });
    worker.on("error", fail);
    worker.on("exit", (code) => {
      if (worker === thread) fail(new Error(`exit code ${code}`));
    });
    worker.unref(); // after the listeners, since one for messages keeps the process alive again
    return worker;
  };

  return async (expressions, names, limitMs, signal) => {
    if (signal?.aborted) return undefined;
    if (expressions.length === 0 || names.length === 0) return () => false;
    thread ??= start();
    const question: MatchQuestion = { id: ++lastId, expressions, names: names.join("\n"), limitMs };
    const asked = Promise.withResolvers<MatchAnswer>();
    waiting.set(question.id, asked);
    thread.postMessage(question);
    const unlink =
      signal &&
      onAbort(signal, () => {
        thread?.postMessage({ cancelled: question.id } satisfies MatchCancellation);
        waiting.delete(question.id);
        asked.resolve({ id: question.id, answers: undefined });
      });
    const { answers } = await asked.promise.finally(unlink);
    return answers && matchesIn(expressions, names, answers);
  };
}

/** Reads the answers by expression and name. */
export function matchesIn(expressions: readonly string[], names: readonly string[], answers: Uint8Array): Matches {
  const rowOf = new Map(expressions.map((expression, row) => [expression, row]));
  const columnOf = new Map(names.map((name, column) => [name, column]));
  return (expression, name) => {
    const [row, column] = [rowOf.get(expression), columnOf.get(name)];
    if (row === undefined || column === undefined) throw new TypeError("an expression or a name that was not asked about");
    const at = row * names.length + column;
    return (((answers[at >> 3] ?? 0) >> (at & 7)) & 1) === 1;
  };
}
