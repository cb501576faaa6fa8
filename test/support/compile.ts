// Compiles routes as the manager does, but for the thread: expressions are matched here.
import { systemClock } from "../../src/base/clock.ts";
import { type Compile, createCompiler } from "../../src/manager/apps/compile/compiler.ts";
import { type MatchExpressions, matchesIn } from "../../src/manager/apps/compile/expression-matcher.ts";
import { startMatching } from "../../src/manager/apps/compile/match-job.ts";

export const matchHere: MatchExpressions = async (expressions, names) => {
  if (expressions.length === 0 || names.length === 0) return () => false;
  const run = startMatching(expressions, names, () => 0);
  run.continue(1);
  return matchesIn(expressions, names, run.answers);
};

export const compileHere: Compile = createCompiler({
  matchExpressions: matchHere,
  clock: { monotonicMs: () => 0, after: systemClock.after },
});
