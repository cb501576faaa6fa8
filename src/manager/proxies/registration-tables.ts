// The tables that registrations name by hash: after a failover a thousand proxies bring the same few, hundreds of kilobytes each, and one of
// them is asked for each. Invariants: a table is known by the bytes that came, hashed here, and by nothing else that a proxy says, so
// that none speaks for another; what was not asked of a stream is not even read; and whoever is asked and does not tell delays the
// others for a moment only. Used by proxy-stream.ts, of which each has a handle.
import { createHash } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { MAX_MESSAGE_BYTES, type RouteTableCodec } from "../../wire/load-proto.ts";
import type { RegistrationMessage, RouteTableMessage, SnapshotMessage } from "../../wire/messages.ts";
import { createByteCache } from "./byte-cache.ts";

export interface RegistrationTables {
  /** @param wake called when others have told, or will not: `ask` may have another answer now */
  open(wake: () => void): StreamTables;
}

/** Of one stream. */
export interface StreamTables {
  /**
   * What to ask of this stream for the tables of its registration; undefined if others are being asked, who may tell any moment.
   * @param mayWait false: the answer is not undefined
   */
  ask(registration: RegistrationMessage, mayWait: boolean): readonly Uint8Array[] | undefined;
  /** What came for it. */
  take(tables: readonly Uint8Array[]): void;
  /** The registration with its tables. One that is not known stays null: the proxy may hold anything. */
  resolve(registration: RegistrationMessage): RegistrationMessage;
  /** Nothing more comes on this stream, or nothing that counts. */
  close(): void;
}

/** Of one registration: as many as it can name. */
const MAX_ASKED = 16;
const HASH_BYTES = 32;
/** When others are asked besides, twice as many each time: a proxy that was stopped or lies must not keep a thousand waiting for long. */
const TELL_MS = 500;
// Encoded; some dozens of the largest tables.
const MAX_KNOWN_BYTES = 16 * 1024 * 1024;

/** A table that somebody has been asked for. */
interface Pending {
  /** The streams that were asked and may tell still. */
  readonly asked: Set<StreamTables>;
  readonly waiting: Map<StreamTables, () => void>;
  /** So many may be asked at a time. */
  most: number;
  sinceMs: number;
}

export interface RegistrationTablesOptions {
  readonly codec: Pick<RouteTableCodec, "decode">;
  readonly clock: Clock;
  readonly maxKnownBytes?: number;
}

export function createRegistrationTables({
  codec,
  clock,
  maxKnownBytes = MAX_KNOWN_BYTES,
}: RegistrationTablesOptions): RegistrationTables {
  const known = createByteCache<RouteTableMessage>(maxKnownBytes);
  const pending = new Map<string, Pending>();

  const mayBeAsked = (key: string): boolean => {
    const entry = pending.get(key);
    if (entry === undefined) return true;
    const nowMs = clock.monotonicMs();
    if (nowMs - entry.sinceMs >= TELL_MS) Object.assign(entry, { most: entry.most * 2, sinceMs: nowMs });
    return entry.asked.size < entry.most;
  };
  const pendingOf = (key: string): Pending => {
    let entry = pending.get(key);
    if (entry === undefined) {
      entry = { asked: new Set(), waiting: new Map(), most: 1, sinceMs: clock.monotonicMs() };
      pending.set(key, entry);
    }
    return entry;
  };
  const forgetIfIdle = (key: string, { asked, waiting }: Pending) => {
    if (asked.size === 0 && waiting.size === 0) pending.delete(key);
  };
  const wakeAll = ({ waiting }: Pending) => {
    const wakes = [...waiting.values()];
    waiting.clear();
    for (const wake of wakes) wake();
  };
  const tell = (key: string, table: RouteTableMessage, bytes: number) => {
    known.set(key, table, bytes);
    const entry = pending.get(key);
    pending.delete(key);
    if (entry !== undefined) wakeAll(entry);
  };

  return {
    open(wake) {
      /** So that nothing that others bring meanwhile puts them out of reach. */
      const held = new Map<string, RouteTableMessage>();
      const asked = new Set<string>();
      const waitsFor = new Set<string>();
      let bytesLeft = MAX_MESSAGE_BYTES;

      const missing = (registration: RegistrationMessage): Map<string, Uint8Array> => {
        const hashes = new Map<string, Uint8Array>();
        for (const { table, tableHash } of snapshotsIn(registration)) {
          if (table !== null || tableHash?.length !== HASH_BYTES || hashes.size >= MAX_ASKED) continue;
          const key = keyOf(tableHash);
          const found = held.get(key) ?? known.get(key);
          if (found === undefined) hashes.set(key, tableHash);
          else held.set(key, found);
        }
        return hashes;
      };
      const stopWaiting = () => {
        for (const key of waitsFor) {
          const entry = pending.get(key);
          if (entry?.waiting.delete(self)) forgetIfIdle(key, entry);
        }
        waitsFor.clear();
      };
      const withTable = (snapshot: SnapshotMessage): SnapshotMessage => {
        const { table, tableHash } = snapshot;
        if (table !== null || tableHash?.length !== HASH_BYTES) return snapshot;
        const key = keyOf(tableHash);
        return { ...snapshot, table: held.get(key) ?? known.get(key) ?? null };
      };
      const self: StreamTables = {
        ask(registration, mayWait) {
          const hashes = missing(registration);
          stopWaiting();
          const others = mayWait ? [...hashes.keys()].filter((key) => !mayBeAsked(key)) : [];
          for (const key of others) {
            waitsFor.add(key);
            pendingOf(key).waiting.set(self, wake);
          }
          if (others.length > 0) return undefined;
          for (const key of hashes.keys()) {
            asked.add(key);
            pendingOf(key).asked.add(self);
          }
          return [...hashes.values()];
        },
        take(tables) {
          for (const bytes of tables.slice(0, asked.size)) {
            bytesLeft -= bytes.length;
            if (bytesLeft < 0) return;
            const key = createHash("sha256").update(bytes).digest("base64");
            const table = asked.has(key) ? (known.get(key) ?? read(bytes)) : undefined;
            if (table === undefined) continue;
            held.set(key, table);
            tell(key, table, bytes.length);
          }
        },
        resolve: (registration) => ({
          ...registration,
          enforced: registration.enforced && withTable(registration.enforced),
          inDoubt: registration.inDoubt.map(withTable),
        }),
        close() {
          stopWaiting();
          held.clear();
          for (const key of asked) {
            const entry = pending.get(key);
            if (entry?.asked.delete(self) !== true) continue;
            wakeAll(entry); // one of them is asked now
            forgetIfIdle(key, entry);
          }
          asked.clear();
        },
      };
      const read = (bytes: Uint8Array): RouteTableMessage | undefined => {
        try {
          return codec.decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
        } catch {
          return undefined;
        }
      };
      return self;
    },
  };
}

function snapshotsIn({ enforced, inDoubt }: RegistrationMessage): readonly SnapshotMessage[] {
  return enforced === null ? inDoubt : [enforced, ...inDoubt];
}

function keyOf(hash: Uint8Array): string {
  return Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString("base64");
}
