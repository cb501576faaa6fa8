// The hooks and probes of one run of a container: postStart, then the startup probe, and only then liveness and readiness.
import type { RecordEvent } from "./container.ts";
import type { Probe } from "./pod-types.ts";
import { type ActionTarget, act, probeLoop } from "./probes.ts";

export interface RunWatch {
  readonly target: ActionTarget;
  /** Fires when the run is over. */
  readonly signal: AbortSignal;
  readonly event: RecordEvent;
  onStarted(): void;
  onReady(isReady: boolean): void;
  /** The container must be killed. */
  onUnhealthy(why: string, probe?: Probe): void;
}

const POST_START_MS = 60_000;
const LIVENESS_DELAY_SECONDS = 1; // a kubelet needs about as long to see that the container runs

/** Runs the hooks and probes until the signal. */
export async function watchRun({ target, signal, event, onStarted, onReady, onUnhealthy }: RunWatch): Promise<void> {
  const { lifecycle, startupProbe, livenessProbe, readinessProbe } = target.container;
  const failed = (kind: string) => (message: string) => event("Warning", "Unhealthy", `${kind} probe failed: ${message}`);
  if (lifecycle?.postStart !== undefined) {
    const error = await act(lifecycle.postStart, target, POST_START_MS).catch((cause: Error) => cause);
    if (error !== undefined && !signal.aborted) return onUnhealthy(`PostStartHook failed: ${error.message}`);
  }
  if (startupProbe !== undefined) {
    const isStarted = await firstThreshold(startupProbe, target, signal, failed("Startup"));
    if (isStarted === false) return onUnhealthy("failed startup probe", startupProbe);
  }
  if (signal.aborted) return;
  onStarted();
  if (livenessProbe !== undefined) {
    const initialDelaySeconds = Math.max(LIVENESS_DELAY_SECONDS, livenessProbe.initialDelaySeconds ?? 0);
    const probe = { ...livenessProbe, initialDelaySeconds };
    void probeLoop(probe, target, signal, {
      onFailure: failed("Liveness"),
      onThreshold: (isSuccess) => isSuccess || onUnhealthy("failed liveness probe", livenessProbe),
    });
  }
  if (readinessProbe === undefined) onReady(true);
  else void probeLoop(readinessProbe, target, signal, { onFailure: failed("Readiness"), onThreshold: onReady });
}

/** True if the probe passed; undefined if the run ended before. */
async function firstThreshold(
  probe: Probe,
  target: ActionTarget,
  signal: AbortSignal,
  onFailure: (message: string) => void,
): Promise<boolean | undefined> {
  const known = new AbortController();
  let passed: boolean | undefined;
  const onThreshold = (isSuccess: boolean) => {
    passed = isSuccess;
    known.abort();
  };
  await probeLoop(probe, target, AbortSignal.any([signal, known.signal]), { onFailure, onThreshold });
  return passed;
}
