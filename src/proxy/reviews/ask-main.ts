// The thread's questions to the main thread, and when to ask them again. Invariant: a flood of reviews leaves
// the main thread free: at most one message is under way, with at most 16 questions and 64 Ki characters.
import { type AbortSource, onAbort } from "../../base/abort.ts";
import { type Clock, sleep } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import type { ReviewSubject } from "../../kube/admission-review.ts";
import { MAX_PICKED_CHARS } from "../../kube/codec/review-reader.ts";
import type { Labels } from "../../kube/label-selector.ts";
import type { ReviewDecision, ReviewQuestion } from "./decide-review.ts";

/** @throws MeshError `ABORTED` when the signal fires */
export type Decide = (question: ReviewQuestion, signal: AbortSource) => Promise<ReviewDecision>;

/** Questions in one message. Each takes some microseconds. */
export const MAX_ASKED = 16;

interface Waiting {
  readonly question: ReviewQuestion;
  readonly chars: number;
  resolve(decision: ReviewDecision): void;
}

export function createQuestions(ask: (questions: readonly ReviewQuestion[]) => void) {
  const queue = new Set<Waiting>();
  let inMessage: readonly Waiting[] = [];
  const askNext = () => {
    if (inMessage.length > 0 || queue.size === 0) return;
    inMessage = firstOf(queue);
    for (const each of inMessage) queue.delete(each);
    ask(inMessage.map(({ question }) => question));
  };
  return {
    async decide(question: ReviewQuestion, signal: AbortSource): Promise<ReviewDecision> {
      const { promise, resolve, reject } = Promise.withResolvers<ReviewDecision>();
      const entry: Waiting = { question, chars: charsOf(question.subject), resolve };
      const unlink = onAbort(signal, () => {
        queue.delete(entry);
        reject(new MeshError("ABORTED", "asking for a decision: aborted", { cause: signal.reason }));
      });
      if (!signal.aborted) {
        queue.add(entry);
        askNext();
      }
      return promise.finally(unlink);
    },
    /** The answers to the last message. */
    answered(decisions: readonly ReviewDecision[]): void {
      const answeredNow = inMessage;
      inMessage = [];
      for (const [index, decision] of decisions.entries()) answeredNow[index]?.resolve(decision);
      askNext();
    },
  };
}

/** Takes at least one question, since no subject alone has more characters. */
function firstOf(waiting: Iterable<Waiting>): readonly Waiting[] {
  const first: Waiting[] = [];
  let chars = 0;
  for (const entry of waiting) {
    chars += entry.chars;
    if (first.length === MAX_ASKED || (first.length > 0 && chars > MAX_PICKED_CHARS)) break;
    first.push(entry);
  }
  return first;
}

function charsOf({ name, namespace, uid, labels, oldLabels }: ReviewSubject): number {
  return name.length + namespace.length + uid.length + charsOfLabels(labels) + charsOfLabels(oldLabels);
}

function charsOfLabels(labels: Labels = {}): number {
  return Object.entries(labels).reduce((chars, [key, value]) => chars + key.length + value.length, 0);
}

export interface RoutesChanges {
  /** Calls the listener when decisions may have changed. Returns the unsubscription. */
  readonly onRoutesChange: (listener: () => void) => () => void;
  readonly clock: Clock;
}

/** The changes of the routes from now on. */
export function followRoutes({ onRoutesChange, clock }: RoutesChanges) {
  let changed = Promise.withResolvers<void>();
  let hasChanged = false;
  const end = onRoutesChange(() => {
    hasChanged = true;
    changed.resolve();
  });
  return {
    /** True if they have changed since the last call. */
    take(): boolean {
      const was = hasChanged;
      if (was) [hasChanged, changed] = [false, Promise.withResolvers<void>()];
      return was;
    },
    /** Resolves as soon as the routes have changed, or after the pause. */
    changeOrPause: (pauseMs: number, signal: AbortSource): Promise<void> =>
      Promise.race([sleep(clock, pauseMs, signal), changed.promise]),
    end,
  };
}
