// `ctrlmesh status --watch`: the same lines again and again. Invariants: it goes on while the API server is away, and
// says so; only Ctrl-C ends it; where the screen is not redrawn, only what has changed is printed.
import { onAbort } from "../../base/abort.ts";
import { sleep } from "../../base/clock.ts";
import { errorMessage, isMeshError } from "../../base/errors.ts";
import { appItem } from "../apps/app-item.ts";
import { appLines, type ShownApp } from "../apps/app-lines.ts";
import type { FoundApp } from "../apps/apps.ts";
import type { Call } from "../frame/command.ts";
import { EXIT, type ExitCode } from "../frame/exit.ts";
import { accessFlags, clusterOptions } from "../frame/flags.ts";

const POLL_MS = 2_000;

interface Look {
  readonly apps: readonly ShownApp[];
  /** Where it looked, for a message. */
  readonly where: string;
}

/** @throws MeshError if the first look says that the command cannot be done: no right, no such app */
export async function watchApps(call: Call, look: () => Promise<Look>): Promise<ExitCode> {
  const { clock, output } = call;
  const stopped = call.interrupted();
  const show = createView(call);
  let hasLooked = false;
  let trouble: string | undefined;
  while (!stopped.aborted) {
    try {
      const seen = await orStopped(look(), stopped);
      if (seen === undefined) break;
      if (trouble !== undefined) output.hint("the API server answers again");
      hasLooked = true;
      trouble = undefined;
      show(seen);
    } catch (error) {
      if (!hasLooked && !isMeshError(error, "NO_ANSWER")) throw error;
      const message = errorMessage(error);
      if (message !== trouble) output.hint(`looking again every ${POLL_MS / 1_000} s: ${message}`);
      trouble = message;
    }
    await orStopped(sleep(clock, POLL_MS), stopped);
  }
  return EXIT.ok;
}

/** Undefined: the signal has fired first. */
function orStopped<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  let unlink = () => {};
  const fired = new Promise<undefined>((resolve) => {
    unlink = onAbort(signal, () => resolve(undefined));
  });
  return Promise.race([promise, fired]).finally(() => unlink());
}

function createView(call: Call): (look: Look) => void {
  const { output, clock, flags } = call;
  const access = accessFlags(clusterOptions(flags));
  if (output.isJson) return documentsOf(call);
  const appendChanges = changesOf(call, access);
  return (look) => {
    const { apps, where } = look;
    const now = clock.now();
    const head = apps.length === 0 ? `there is no app ${where}` : `${timeText(now)}  Ctrl-C ends`;
    const isDrawn = output.redraw([head, ...apps.flatMap((app) => ["", ...appLines(app, access, now)])]);
    if (!isDrawn) appendChanges(look);
  };
}

/** A document for each change. */
function documentsOf({ output }: Call): (look: Look) => void {
  let printed = "";
  return ({ apps }) => {
    const items = apps.map(appItem);
    const text = JSON.stringify(items);
    if (text !== printed) output.documentLine("AppList", { items });
    printed = text;
  };
}

/** The apps that have changed, below the time. Ages alone are no change. */
function changesOf({ output, clock }: Call, access: readonly string[]): (look: Look) => void {
  let printed: ReadonlyMap<string, string> | undefined;
  return ({ apps, where }) => {
    const texts = new Map(apps.map((app) => [titleOf(app), appLines(app, access, 0).join("\n")]));
    const changed = apps.filter((app) => printed?.get(titleOf(app)) !== texts.get(titleOf(app)));
    const gone = [...(printed?.keys() ?? [])].filter((title) => !texts.has(title)).map((title) => `${title}: is gone`);
    const lines = [...changed.flatMap((app) => appLines(app, access, clock.now())), ...gone];
    if (lines.length > 0) output.data("AppList", {}, [timeText(clock.now()), ...lines]);
    if (apps.length === 0 && printed?.size !== 0) output.hint(`there is no app ${where}`);
    printed = texts;
  };
}

function titleOf({ kind, namespace, name }: FoundApp): string {
  return `${kind.resource.kind} ${namespace}/${name}`;
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
