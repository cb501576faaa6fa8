// The deadline for the end of a pod. A second deletion may set an earlier deadline.

export interface Deadline {
  /** Resolves once the time is over. */
  readonly expired: Promise<void>;
  /** True if the pod has no time, so that everything is killed at once. */
  readonly isForced: boolean;
  /** Sets the deadline if it is earlier than before. */
  shorten(graceMs: number): void;
}

export function createDeadline(graceMs: number): Deadline {
  const { promise: expired, resolve } = Promise.withResolvers<void>();
  let atMs = Number.POSITIVE_INFINITY;
  let isForced = false;
  let timer: NodeJS.Timeout | undefined;
  const shorten = (ms: number) => {
    isForced ||= ms <= 0;
    if (performance.now() + ms >= atMs) return;
    atMs = performance.now() + ms;
    clearTimeout(timer);
    if (isForced) return resolve();
    timer = setTimeout(resolve, ms);
    timer.unref();
  };
  shorten(graceMs);
  return {
    expired,
    shorten,
    get isForced() {
      return isForced;
    },
  };
}
