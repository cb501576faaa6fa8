// The numbers of the proxy's streams, by which a manager recognizes a late registration, and the promised
// epoch, both over restarts. Invariants: a later stream has a higher number, even after the clock was set
// back, as long as the disk takes a few bytes; the file never names a lower epoch than was promised.
import { sleep } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { Slot } from "../state/state-folder.ts";

export interface StreamLedgerOptions extends Pick<ProcessContext, "clock" | "log"> {
  readonly slot: Slot;
  /** Set to 1 while the disk lags behind what was promised. */
  readonly unstored: { set(value: 0 | 1): void };
}

interface Entry {
  /** Ahead of the numbers in use, so that a waiting proxy does not write the file with every attempt. */
  readonly bound: number;
  readonly epoch: number;
}

/**
 * After this time, older leaders no longer believe that they lead: they stop after two thirds of their lease,
 * which is 20 s at most (src/manager/config.ts). It is also a manager's lease by default.
 */
export const LEASE_MS = 15_000;
// How far the stored bound is ahead. Numbers follow the wall clock, so if the file is lost, the next number
// is too low by at most this for each earlier restart.
const RESERVED = 10_000;

export type StreamLedger = ReturnType<typeof createStreamLedger>;

export function createStreamLedger({ slot, clock, log, unstored }: StreamLedgerOptions) {
  let lastNumber = 0;
  let promised: Entry = { bound: 0, epoch: 0 };
  /** The oldest entry that may be on the disk; undefined if the disk may have none. */
  let onDisk: Entry | undefined;
  let isStored = false;
  let hasPromised = false;

  // An older entry must not replace a newer one, so each save takes the entry that holds when its turn comes.
  const save = () =>
    slot.save(() => {
      const next = promised;
      if (isStored && onDisk?.bound === next.bound && onDisk.epoch === next.epoch) return undefined;
      const isOlder = onDisk === undefined || onDisk.epoch < next.epoch;
      return {
        text: () => `${next.bound} ${next.epoch}\n`,
        // The next process waits if it finds nothing. With an older promise it would follow an older leader.
        onFullDisk: isOlder ? "empty" : "keep",
        done({ is }) {
          isStored = is === "stored";
          unstored.set(isStored ? 0 : 1);
          if (isStored) onDisk = next;
          else if (is === "refused" && isOlder) onDisk = undefined;
        },
      };
    });
  const reserve = () => {
    promised = { ...promised, bound: Math.max(lastNumber, clock.now()) + RESERVED };
    return save();
  };
  return {
    /** To be called once, before anything else. */
    async open(): Promise<void> {
      const found = await load(slot, log);
      onDisk = found === "lost" ? undefined : found;
      hasPromised = found !== undefined;
      if (onDisk !== undefined) {
        promised = onDisk;
        lastNumber = onDisk.bound;
        await reserve(); // a disk that does not take this may not have taken the last promise
      }
    },
    /**
     * For a process with routes of the process before, which has therefore made a promise. If that promise is
     * unknown, resolves only when no leader from before it can still believe that it leads, or when the
     * signal fires. So a promise holds even without a disk.
     */
    async outlastOlderLeaders(signal: AbortSignal): Promise<void> {
      if (isStored) return;
      log.warn({ waitMs: LEASE_MS }, "it is not known which leader was followed: waiting until older ones are over");
      await sleep(clock, LEASE_MS, signal).catch(() => undefined);
    },
    async next(): Promise<number> {
      lastNumber = Math.max(lastNumber + 1, clock.now());
      if (lastNumber > promised.bound) await reserve();
      return lastNumber;
    },
    /** An earlier process may have served: it has left a file, which a full disk may have kept empty. */
    get hasPromised(): boolean {
      return hasPromised;
    },
    /** 0 if none was promised. */
    get epoch(): number {
      return promised.epoch;
    },
    /** Promises to follow no leader of a lower epoch. False if a newer one was promised already. */
    async promise(epoch: number): Promise<boolean> {
      if (epoch < promised.epoch) return false;
      promised = { ...promised, epoch };
      await save();
      return epoch === promised.epoch;
    },
  };
}

/** "lost": there is a file that cannot be read. */
async function load(slot: Slot, log: Logger): Promise<Entry | "lost" | undefined> {
  try {
    const text = await slot.read();
    if (text === undefined) return undefined;
    const [, bound, epoch] = (/^(\d+) (\d+)\n$/.exec(text) ?? []).map(Number);
    if (Number.isSafeInteger(epoch) && bound !== undefined && epoch !== undefined && bound < Number.MAX_SAFE_INTEGER / 2) {
      return { bound, epoch };
    }
    throw new Error("it is not readable");
  } catch (error) {
    log.warn({ err: error, path: slot.path }, "stored numbers of streams ignored");
    return "lost";
  }
}
