// The thread in which the manager matches regular expressions, so that no expression of a tenant keeps the
// manager from its other work. Invariant: a job waits only for jobs that have taken no longer than it has. So
// each costly job of a tenant delays the others by at most the limit of the first level.
import { parentPort } from "node:worker_threads";
import { systemClock } from "../../../base/clock.ts";
import { type MatchRun, startMatching } from "./match-job.ts";

/** A question of the main thread. Names contain no line breaks. */
export interface MatchQuestion {
  readonly id: number;
  readonly expressions: readonly string[];
  readonly names: string;
  readonly limitMs: number;
}

export interface MatchCancellation {
  readonly cancelled: number;
}

export interface MatchAnswer {
  readonly id: number;
  /** As in MatchRun; undefined if the job has exceeded its limit. */
  readonly answers: Uint8Array<ArrayBuffer> | undefined;
}

const SLICE_MS = 20;

interface Level {
  /** A job that is not complete by then begins again at the next level, without what it has done. */
  readonly limitMs: number;
  /** Each running job keeps its answers, and the automaton of one expression, up to 8 MB. */
  readonly maxRunning: number;
  readonly waiting: MatchQuestion[];
  readonly running: { readonly question: MatchQuestion; readonly run: MatchRun }[];
}

/** Ordinary jobs take a tenth of a second in a cluster of 10,000 namespaces. A namespace may have 64 apps. */
const LEVELS: readonly Level[] = [
  { limitMs: 100, maxRunning: 1, waiting: [], running: [] },
  { limitMs: 1_000, maxRunning: 1, waiting: [], running: [] },
  { limitMs: Number.POSITIVE_INFINITY, maxRunning: 4, waiting: [], running: [] },
];

const isBusy = ({ waiting, running }: Level) => waiting.length + running.length > 0;
let isScheduled = false;

function schedule(): void {
  if (isScheduled || !LEVELS.some(isBusy)) return;
  isScheduled = true;
  setImmediate(turn);
}

function turn(): void {
  isScheduled = false;
  const at = LEVELS.findIndex(isBusy);
  const level = LEVELS[at];
  if (level === undefined) return;
  const { waiting, running } = level;
  while (running.length < level.maxRunning && waiting.length > 0) {
    const question = waiting.shift() as MatchQuestion;
    running.push({ question, run: startMatching(question.expressions, question.names.split("\n"), systemClock.monotonicMs) });
  }
  const next = running.shift();
  if (next !== undefined) advance(next, level, LEVELS[at + 1]);
  schedule();
}

function advance(job: Level["running"][number], { limitMs, running }: Level, higher: Level | undefined): void {
  const { question, run } = job;
  run.continue(SLICE_MS);
  if (run.isComplete) answer({ id: question.id, answers: run.answers as Uint8Array<ArrayBuffer> });
  else if (run.spentMs >= question.limitMs) answer({ id: question.id, answers: undefined });
  else if (higher !== undefined && run.spentMs >= limitMs) higher.waiting.push(question);
  else running.push(job);
}

function answer(message: MatchAnswer): void {
  parentPort?.postMessage(message, message.answers === undefined ? [] : [message.answers.buffer]);
}

function cancel(id: number): void {
  for (const { waiting, running } of LEVELS) {
    removeFrom(waiting, (question) => question.id === id);
    removeFrom(running, ({ question }) => question.id === id);
  }
}

function removeFrom<T>(list: T[], isIt: (item: T) => boolean): void {
  const at = list.findIndex(isIt);
  if (at >= 0) list.splice(at, 1);
}

parentPort?.on("message", (message: MatchQuestion | MatchCancellation) => {
  if ("cancelled" in message) return cancel(message.cancelled);
  LEVELS[0]?.waiting.push(message);
  schedule();
});
