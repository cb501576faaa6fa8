// One container over all of its runs: start, hooks, probes, exit, back-off, restart, stop. There is at most one run at a time,
// and none after `stop` has resolved. pod-worker.ts orders the containers of a pod.

import { commandLine, containerEnv, type EnvSources } from "./container-env.ts";
import { watchRun } from "./container-probes.ts";
import { type ContainerProcess, startProcess } from "./container-process.ts";
import { createDeadline, type Deadline } from "./deadline.ts";
import type { Container, ContainerState, ContainerStatus, NodePod, Probe } from "./pod-types.ts";
import { act, pause } from "./probes.ts";
import type { Bind } from "./sandbox.ts";
import { identityOf } from "./sandbox.ts";
import type { TestImage } from "./test-image.ts";

export type RecordEvent = (type: "Normal" | "Warning", reason: string, message: string) => void;

export interface ContainerOptions {
  readonly pod: NodePod;
  readonly container: Container;
  /** True if the container may run again after this exit code. */
  restartsAfter(exitCode: number): boolean;
  readonly env: EnvSources;
  image(name: string): TestImage | undefined;
  binds(image: TestImage): readonly Bind[];
  /** The folder of a run. */
  runDir(run: number): string;
  /** The path of the pod's network namespace. */
  readonly network: string;
  readonly hidden: readonly string[];
  readonly logFile: string;
  /** The first pause before a restart, doubled each time up to `maxBackoffMs`. */
  readonly backoffMs: number;
  readonly maxBackoffMs: number;
  readonly event: RecordEvent;
  /** Called when the status has changed. */
  readonly onChange: () => void;
}

export interface RunningContainer {
  readonly name: string;
  readonly logFile: string;
  readonly status: ContainerStatus;
  /** The start of the current run. */
  readonly process: ContainerProcess | undefined;
  /** Resolves with the exit code once the container has ended for good. */
  readonly finished: Promise<number>;
  /** Resolves once a run has started: its process runs, its hook is done and its startup probe has passed. */
  readonly started: Promise<void>;
  start(): void;
  /**
   * Ends the container for good: preStop at once, SIGTERM at its turn, SIGKILL at the deadline.
   * @param turn by default at once
   */
  stop(deadline: Deadline, turn?: Promise<unknown>): Promise<void>;
}

const SETUP_RETRY_MS = 500;
const STEADY_MS = 10_000; // a run this long resets the back-off
const MIN_GRACE_MS = 2_000; // the kubelet's
const HOOK_MS = 600_000; // the deadline comes first
const NEVER_RAN = 137;

export function createContainer(options: ContainerOptions): RunningContainer {
  const { container, event, onChange } = options;
  const stopping = new AbortController();
  const started = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<number>();
  let state: ContainerState = { waiting: { reason: "ContainerCreating" } };
  let lastState: ContainerState = {};
  let isStarted = false;
  let isReady = false;
  let runs = 0;
  let process: ContainerProcess | undefined;
  let killed: ContainerProcess | undefined;
  let isRunning = false;

  const setState = (next: ContainerState) => {
    state = next;
    onChange();
  };
  const setReady = (next: boolean) => {
    if (isReady === next) return;
    isReady = next;
    onChange();
  };

  async function launch(): Promise<ContainerProcess | undefined> {
    const image = options.image(container.image);
    if (image === undefined) {
      event("Warning", "Failed", `Failed to pull image "${container.image}": the test node does not know it`);
      setState({ waiting: { reason: "ErrImagePull", message: `the test node does not know the image ${container.image}` } });
      return undefined;
    }
    try {
      const env = containerEnv(options.pod, container, image, options.env);
      const sandbox = {
        dir: options.runDir(runs),
        hostname: options.pod.spec.hostname ?? options.pod.metadata.name ?? "",
        hidden: options.hidden,
        binds: options.binds(image),
        readOnlyRoot: container.securityContext?.readOnlyRootFilesystem ?? false,
        workingDir: container.workingDir ?? image.workingDir ?? "/",
        identity: identityOf(options.pod, container, image),
      };
      const { network, logFile } = options;
      return await startProcess({ sandbox, network, env, argv: commandLine(container, image, env), logFile });
    } catch (error) {
      const { message } = error as Error;
      event("Warning", "Failed", `Error: ${message}`);
      setState({ waiting: { reason: "CreateContainerConfigError", message } });
      return undefined;
    }
  }

  /** One run, from start to exit. */
  async function run(current: ContainerProcess): Promise<number> {
    const over = new AbortController();
    process = current;
    const startedAt = new Date().toISOString();
    event("Normal", "Started", `Started container ${container.name}`);
    setState({ running: { startedAt } });
    void watchRun({
      target: { container, podIP: options.env.addresses.podIP, process: current },
      signal: over.signal,
      event,
      onStarted() {
        isStarted = true;
        started.resolve();
        onChange();
      },
      onReady: setReady,
      onUnhealthy: (why, probe) => killUnhealthy(current, why, probe),
    });
    const exitCode = await current.ended;
    over.abort();
    process = undefined;
    isStarted = false;
    isReady = false;
    const finishedAt = new Date().toISOString();
    setState({ terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error", startedAt, finishedAt } });
    return exitCode;
  }

  function killUnhealthy(current: ContainerProcess, why: string, cause: Probe = {}): void {
    if (process !== current || killed === current || stopping.signal.aborted) return;
    killed = current;
    event("Normal", "Killing", `Container ${container.name} ${why}, will be restarted`);
    const grace = cause.terminationGracePeriodSeconds ?? options.pod.spec.terminationGracePeriodSeconds ?? 30;
    void terminate(current, createDeadline(grace * 1000), Promise.resolve());
  }

  /** The hook at once, SIGTERM at its turn, SIGKILL at the deadline: the kubelet's order. */
  async function terminate(current: ContainerProcess, deadline: Deadline, turn: Promise<unknown>): Promise<void> {
    const over = [deadline.expired, current.ended];
    const hook = container.lifecycle?.preStop;
    if (hook !== undefined && !deadline.isForced) {
      const target = { container, podIP: options.env.addresses.podIP, process: current };
      await Promise.race([act(hook, target, HOOK_MS), ...over]).catch((error: Error) =>
        event("Warning", "FailedPreStopHook", `PreStopHook failed: ${error.message}`),
      );
    }
    await Promise.race([turn, ...over]);
    if (!deadline.isForced) {
      current.signal("SIGTERM");
      // Every container gets two seconds, even if the pod's time is over.
      const ended = new AbortController();
      void current.ended.then(() => ended.abort());
      await Promise.race([current.ended, Promise.all([deadline.expired, pause(MIN_GRACE_MS, ended.signal)])]);
    }
    current.signal("SIGKILL");
    await current.ended;
  }

  async function loop(): Promise<void> {
    const { signal } = stopping;
    let backoffMs = options.backoffMs;
    let exitCode = NEVER_RAN;
    while (!signal.aborted) {
      const current = await launch();
      if (current === undefined) {
        await pause(SETUP_RETRY_MS, signal);
        continue;
      }
      if (signal.aborted) current.signal("SIGKILL");
      const beganMs = Date.now();
      exitCode = await run(current);
      if (signal.aborted || !options.restartsAfter(exitCode)) break;
      if (Date.now() - beganMs > STEADY_MS) backoffMs = options.backoffMs;
      lastState = state;
      event("Warning", "BackOff", `Back-off restarting failed container ${container.name}`);
      setState({ waiting: { reason: "CrashLoopBackOff", message: `back-off ${backoffMs} ms restarting failed container` } });
      await pause(backoffMs, signal);
      backoffMs = Math.min(2 * backoffMs, options.maxBackoffMs);
      if (signal.aborted) break;
      runs++;
    }
    if (state.waiting !== undefined && lastState.terminated !== undefined) setState(lastState);
    finished.resolve(exitCode);
  }

  return {
    name: container.name,
    logFile: options.logFile,
    get status() {
      return {
        name: container.name,
        image: container.image,
        imageID: container.image,
        ready: isReady,
        started: isStarted,
        restartCount: runs,
        state,
        lastState,
      };
    },
    get process() {
      return process;
    },
    finished: finished.promise,
    started: started.promise,
    start() {
      if (isRunning || stopping.signal.aborted) return;
      isRunning = true;
      setState({ waiting: { reason: "ContainerCreating" } });
      void loop();
    },
    async stop(deadline, turn = Promise.resolve()) {
      stopping.abort();
      if (!isRunning) return finished.resolve(NEVER_RAN);
      const current = process;
      if (current !== undefined) {
        event("Normal", "Killing", `Stopping container ${container.name}`);
        await terminate(current, deadline, turn);
      }
      await finished.promise;
    },
  };
}
