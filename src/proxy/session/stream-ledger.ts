// What the proxy remembers of its streams over restarts: their numbers, by which a manager recognizes a late
// registration, and the promised epoch. Invariants: a later stream has a higher number, also after a restart
// and after the clock was set back, as long as the disk takes a few bytes; the file never names a lower epoch
// than was promised. A proxy that has routes and finds no file waits until older leaders are over, so that a
// promise needs no disk. Called by the session and mesh-client.
import { type Clock, sleep } from "../../base/clock.ts";
import { emptyFile, isMissing, readBounded, removeFile, replaceFile } from "../../base/durable-file.ts";
import type { Logger } from "../../base/log.ts";

export interface StreamLedger {
  /** Reads what the process before has left; to be called once, before anything else. */
  open(): Promise<void>;
  /**
   * For a process that holds routes of the one before, which has promised something therefore. Where it is
   * not known what, resolves only when no leader from before that promise can believe any more that it leads,
   * or the signal fires.
   */
  outlastOlderLeaders(signal: AbortSignal): Promise<void>;
  /** The number of the next stream. */
  next(): Promise<number>;
  /**
   * A process before may have promised something, so that it may have served, whatever else it has left:
   * there is a file, which the first stream makes. What is in it does not matter. A full disk takes an empty
   * one only, and a process that has promised nothing writes over what it has found while writes of the one
   * before are still under way.
   */
  readonly hasPromised: boolean;
  /** The highest epoch that was promised; 0 if none. */
  readonly epoch: number;
  /** Promises to follow no leader of a lower epoch. False if a newer one was promised already. */
  promise(epoch: number): Promise<boolean>;
}

export interface StreamLedgerOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Told whether the disk lags behind what was promised. */
  readonly unstored: { set(value: 0 | 1): void };
}

interface Entry {
  /**
   * A bound that is some way ahead of what was used, so that proxies that wait for a manager do not write
   * with every try.
   */
  readonly bound: number;
  readonly epoch: number;
}

/**
 * A manager's lease by default, in milliseconds. Whoever leads believes it for two thirds of its lease, which
 * is 20 s at most (src/manager/config.ts): one that was followed by another is over after this.
 */
export const LEASE_MS = 15_000;
// Numbers are milliseconds since the epoch where nothing keeps them from it: a proxy that has lost its file
// is late by no more than this for each restart.
const RESERVED = 10_000;
const MAX_BYTES = 64;

export function createStreamLedger({ path, clock, log, unstored }: StreamLedgerOptions): StreamLedger {
  let last = 0;
  let now: Entry = { bound: 0, epoch: 0 };
  /** The least that may be on the disk; undefined if that is nothing. */
  let stored: Entry | undefined;
  let isStored = false;
  let hasFailed = false;
  let hasPromised = false;
  let saving: Promise<void> = Promise.resolve();

  const forget = async () => {
    try {
      await emptyFile(path).catch(() => removeFile(path));
      stored = undefined;
    } catch {
      // A disk that takes nothing at all does not take the first number of the next process either: that one
      // waits as well.
    }
  };
  const write = async (next: Entry) => {
    try {
      await replaceFile(path, `${next.bound} ${next.epoch}\n`);
      stored = next;
      isStored = true;
      hasFailed = false;
    } catch (error) {
      isStored = false;
      if (!hasFailed) log.warn({ err: error, path }, "streams and promises not stored: a restart may wait before it connects");
      hasFailed = true;
      // The next process waits if it finds nothing; by an older promise it would follow whom this one does
      // not.
      if (stored === undefined || stored.epoch < next.epoch) await forget();
    }
    unstored.set(hasFailed ? 1 : 0);
  };
  // One after the other, and always what holds by then: an older number or promise must not come after a
  // newer one.
  const save = (): Promise<void> => {
    saving = saving.then(async () => {
      const isSame = isStored && stored?.bound === now.bound && stored.epoch === now.epoch;
      if (!isSame) await write(now);
    });
    return saving;
  };
  const reserve = () => {
    now = { ...now, bound: Math.max(last, clock.now()) + RESERVED };
    return save();
  };
  return {
    async open() {
      const found = await load(path, log);
      stored = found === "lost" ? undefined : found;
      hasPromised = found !== undefined;
      if (stored !== undefined) {
        now = stored;
        last = stored.bound;
        await reserve(); // a disk that does not take this may not have taken the last promise
      }
    },
    async outlastOlderLeaders(signal) {
      if (isStored) return;
      log.warn({ waitMs: LEASE_MS }, "it is not known which leader was followed: waiting until older ones are over");
      await sleep(clock, LEASE_MS, signal).catch(() => undefined);
    },
    async next() {
      last = Math.max(last + 1, clock.now());
      if (last > now.bound) await reserve();
      return last;
    },
    get hasPromised() {
      return hasPromised;
    },
    get epoch() {
      return now.epoch;
    },
    async promise(epoch) {
      if (epoch < now.epoch) return false;
      now = { ...now, epoch };
      await save();
      return epoch === now.epoch;
    },
  };
}

/** "lost": there was something that cannot be known any more. */
async function load(path: string, log: Logger): Promise<Entry | "lost" | undefined> {
  try {
    const [, bound, epoch] = (/^(\d+) (\d+)\n$/.exec(await readBounded(path, MAX_BYTES)) ?? []).map(Number);
    if (Number.isSafeInteger(epoch) && bound !== undefined && epoch !== undefined && bound < Number.MAX_SAFE_INTEGER / 2) {
      return { bound, epoch };
    }
    log.warn({ path }, "stored numbers of streams ignored: not readable");
  } catch (error) {
    if (isMissing(error)) return undefined;
    log.warn({ err: error, path }, "stored numbers of streams ignored");
  }
  return "lost";
}
