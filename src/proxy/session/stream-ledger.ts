// Keeps the numbers of the proxy's streams and its promise (src/mesh/link/ledger.ts) in a file.
import { sleep } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { afterSave, type Entry, foundOnDisk, NEW_LEDGER, toSave, withNextNumber, withPromise } from "../../mesh/link/ledger.ts";
import type { Slot } from "../state/state-folder.ts";

export interface StreamLedgerOptions extends Pick<ProcessContext, "clock" | "log"> {
  readonly slot: Slot;
  /** Set to 1 while the disk lags behind what was promised. */
  readonly unstored: { set(value: 0 | 1): void };
}

/**
 * After this time, older leaders no longer believe that they lead: they stop after two thirds of their lease,
 * which is 20 s at most (src/manager/config.ts). It is also a manager's lease by default.
 */
export const LEASE_MS = 15_000;

export type StreamLedger = ReturnType<typeof createStreamLedger>;

export function createStreamLedger({ slot, clock, log, unstored }: StreamLedgerOptions) {
  let promises = NEW_LEDGER;

  // An older entry must not replace a newer one, so each save takes the entry that holds when its turn comes.
  const save = () =>
    slot.save(() => {
      const next = toSave(promises);
      if (next === undefined) return undefined;
      const { entry, onFullDisk } = next;
      return {
        text: () => `${entry.bound} ${entry.epoch}\n`,
        onFullDisk,
        done({ is }) {
          promises = afterSave(promises, entry, is === "same" ? "unknown" : is);
          unstored.set(promises.isStored ? 0 : 1);
        },
      };
    });
  return {
    /** To be called once, before anything else. */
    async open(): Promise<void> {
      promises = foundOnDisk(await load(slot, log), clock.now());
      if (promises.onDisk !== undefined) await save();
    },
    /**
     * For a process after one that has made a promise, as its routes or its file tell. If that promise is
     * unknown, resolves only when no leader from before it can still believe that it leads, or when the
     * signal fires. So a promise holds even without a disk.
     */
    async outlastOlderLeaders(signal: AbortSignal): Promise<void> {
      if (promises.isStored) return;
      log.warn({ waitMs: LEASE_MS }, "it is not known which leader was followed: waiting until older ones are over");
      await sleep(clock, LEASE_MS, signal).catch(() => undefined);
    },
    async next(): Promise<number> {
      const { bound } = promises;
      promises = withNextNumber(promises, clock.now());
      const number = promises.lastNumber;
      if (promises.bound !== bound) await save();
      return number;
    },
    get hasPromised(): boolean {
      return promises.hasPromised;
    },
    /** 0 if none was promised. */
    get epoch(): number {
      return promises.epoch;
    },
    /** Ledger to follow no leader of a lower epoch. False if a newer one was promised already. */
    async promise(epoch: number): Promise<boolean> {
      const next = withPromise(promises, epoch);
      if (next === undefined) return false;
      promises = next;
      await save();
      return epoch === promises.epoch;
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
