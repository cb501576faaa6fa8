// How many requests of a pool may run at once, as a policy without a queue, timers or I/O. Invariant: `base` while nobody has to
// wait long; one more for each `patienceMs` of waiting, up to `max`; `base` again after CALM_MS without need. Asked by the gate.

export interface GrowthOptions {
  /** Requests at once when nobody has to wait long. */
  readonly base: number;
  /** Never more than this. */
  readonly max: number;
  /** How long is waited before one more may run, and between two such, in milliseconds. */
  readonly patienceMs: number;
  /** What counts as waiting: the first in the queue has to (`wait`), or nobody has left meanwhile (`standstill`). */
  readonly growOn: "wait" | "standstill";
}

/** After this time without need the limit is back at `base`; the connections beyond it close when idle. */
const CALM_MS = 30_000;
/** Where only a standstill counts: so long waits the first in the queue though others leave, so that one quick slot is not enough. */
const HEAD_PATIENCE_MS = 1_000;

/** The limit, and when it changes. Times are monotonic milliseconds. */
export class Growth {
  readonly #options: GrowthOptions;
  #limit: number;
  /** Since when the waiting counts for all: one more was let in, or (at a standstill) somebody left. */
  #movedMs = Number.NEGATIVE_INFINITY;
  #grownMs = Number.NEGATIVE_INFINITY;
  #neededMs = Number.NEGATIVE_INFINITY;

  constructor(options: GrowthOptions) {
    this.#options = options;
    this.#limit = options.base;
  }

  get limit(): number {
    return this.#limit;
  }

  /** When one more may run, if the first in the queue has waited since then; undefined if it is the most already. */
  growAt(headSinceMs: number): number | undefined {
    const { max, patienceMs, growOn } = this.#options;
    if (this.#limit >= max) return undefined;
    const atMs = Math.max(headSinceMs, this.#movedMs) + patienceMs;
    return growOn === "wait" ? atMs : Math.min(atMs, Math.max(headSinceMs, this.#grownMs) + HEAD_PATIENCE_MS);
  }

  onGrow(nowMs: number): void {
    this.#limit++;
    this.#grownMs = this.#movedMs = this.#neededMs = nowMs;
  }

  /** One has left while others wait. */
  onLeave(nowMs: number): void {
    if (this.#options.growOn === "standstill") this.#movedMs = nowMs;
  }

  /** One comes; `running` are in. */
  onEnter(running: number, nowMs: number): void {
    const { base } = this.#options;
    if (running > base) this.#neededMs = nowMs;
    else if (nowMs - this.#neededMs > CALM_MS) this.#limit = base;
  }

  /** True once it has grown: only then `onEnter` has something to do. */
  get isGrown(): boolean {
    return this.#limit > this.#options.base;
  }
}
