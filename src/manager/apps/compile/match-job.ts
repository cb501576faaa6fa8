// Matches regular expressions with names, in slices. Pure but for the clock that it is given. Invariant: a
// job exceeds its limit by one match at most. re2js is linear in the name, but some expressions within the
// bounds of a spec take 30 ms for one name.
import { RE2JS } from "re2js";

export type MatchRun = ReturnType<typeof startMatching>;

export function startMatching(expressions: readonly string[], names: readonly string[], nowMs: () => number) {
  const count = expressions.length * names.length;
  const answers = new Uint8Array(Math.ceil(count / 8));
  let done = 0;
  let spentMs = 0;
  let compiled: RE2JS | undefined;
  return {
    /** A bit for each expression and name, set where it matches: all names for the first expression first. */
    answers,
    /** The time that the job has taken so far, in milliseconds. */
    get spentMs(): number {
      return spentMs;
    },
    get isComplete(): boolean {
      return done === count;
    },
    /** Continues for about `sliceMs`. */
    continue(sliceMs: number): void {
      const startMs = nowMs();
      while (done < count && nowMs() - startMs < sliceMs) {
        const at = done % names.length;
        if (at === 0 || compiled === undefined) compiled = RE2JS.compile(expressions[Math.floor(done / names.length)] ?? "");
        if (compiled.matcher(names[at] ?? "").find()) answers[done >> 3] = (answers[done >> 3] ?? 0) | (1 << (done & 7));
        done++;
      }
      spentMs += nowMs() - startMs;
    },
  };
}
