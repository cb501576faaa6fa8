// The proxy's files in its data folder, each in a slot. The table in docs/design.md, "A proxy that restarts",
// says what a full disk does to each file. Invariants: a stored text is whole or was never there; the saves
// of a slot run one after the other, and the saves that wait become one, of the newest content.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { emptyFile, isMissing, readBounded, removeFile, replaceFile } from "../../base/durable-file.ts";
import { MeshError } from "../../base/errors.ts";
import type { Immutable } from "../../base/json.ts";
import type { Logger } from "../../base/log.ts";

const MIB = 1024 * 1024;
/** For each file: its name, its bound in bytes (10,000 namespaces take 0.3 MB), and `notStored`. */
const SLOTS = {
  snapshot: spec("snapshot.json", 32 * MIB, "snapshot not stored: a restart needs the manager"),
  unsaved: spec("snapshot.json.unsaved", 0, "unsaved moves not noted: after a crash an informer may miss a move"),
  policies: spec("policies.json", 32 * MIB, "policies not stored: a restart needs the manager"),
  breakers: spec("breakers.json", 8 * MIB, "open breakers not stored: a restart may close or open one"),
  budget: spec("budget.json", MIB / 4, "shares of budgets not stored: a restart needs the manager"),
  stream: spec("stream", 64, "streams and promises not stored: a restart may wait before it connects"),
  cleanEnd: spec("clean-end", 2_048, "clean end not stored: the next process delays its first acknowledgement"),
  certificate: spec("serving-certificate.json", MIB / 4, "certificate not stored: a restart has to wait for the manager"),
};
type SlotName = keyof typeof SLOTS;
type SlotSpec = ReturnType<typeof spec>;

/** @param notStored the warning in the log if the disk takes no new content: what the user loses by it */
function spec(file: string, maxBytes: number, notStored: string) {
  return { file, maxBytes, notStored };
}

export type StateFolder = Readonly<Record<SlotName, Slot>>;

export interface Slot {
  readonly path: string;
  readonly isThere: boolean;
  /** Undefined if there is no file. @throws if it cannot be read or is over the bound */
  read(): Promise<string | undefined>;
  /**
   * Stores what `content` returns when its turn comes, if anything. Saves that wait become one save, of the
   * newest `content`. Resolves even if the disk has refused the text. The log says that once, until the disk
   * takes a text again or the file gets worse.
   */
  save(content: () => Content | undefined): Promise<Saved>;
  /** Synchronous. A crash of the node may lose the file. A failure is logged. */
  touch(): void;
  remove(): Promise<void>;
  idle(): Promise<unknown>;
}

export interface Content {
  text(): string;
  /** What is left on a disk that does not take the text. */
  readonly onFullDisk: "keep" | "empty" | "remove" | { readonly less: string };
  /** Called before the next save asks for its content. */
  done?(saved: Saved): void;
}

/** `refused`: the disk has what `onFullDisk` says. `unknown`: it may have any content. */
export type Saved =
  | { readonly is: "stored" | "same"; readonly error?: undefined }
  | { readonly is: "refused" | "unknown"; readonly error: unknown };

/** @param maxBytes of each file; default: the bound of its slot */
export function createStateFolder(dir: string, log: Logger, maxBytes?: number): StateFolder {
  const slots = Object.entries<SlotSpec>(SLOTS).map(([name, slot]) => [
    name,
    createSlot(dir, log, maxBytes === undefined ? slot : { ...slot, maxBytes }),
  ]);
  return Object.fromEntries(slots);
}

function createSlot(dir: string, log: Logger, { file, maxBytes, notStored }: SlotSpec): Slot {
  const path = join(dir, file);
  let failure: "refused" | "unknown" | undefined;
  let last: Promise<unknown> = Promise.resolve();
  /** The save that waits for its turn. It will store the content of the newest caller. */
  let waiting: Promise<Saved> | undefined;
  let newestContent: () => Content | undefined = () => undefined;

  const write = async (content: Content): Promise<Saved> => {
    try {
      const text = content.text();
      if (Buffer.byteLength(text) > maxBytes) throw new MeshError("STORED_FILE", `storing ${path}: over ${maxBytes} bytes`);
      await replaceFile(path, text);
      failure = undefined;
      return { is: "stored" };
    } catch (error) {
      const is = await fallBack(path, content.onFullDisk).then(
        () => "refused" as const,
        () => "unknown" as const,
      );
      if (failure !== is) log.warn({ err: error, path, is }, notStored);
      failure = is;
      return { is, error };
    }
  };
  return {
    path,
    get isThere() {
      return existsSync(path);
    },
    async read() {
      try {
        return await readBounded(path, maxBytes);
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },
    save(content) {
      newestContent = content;
      if (waiting !== undefined) return waiting;
      waiting = last.then(async () => {
        waiting = undefined;
        const next = newestContent();
        if (next === undefined) return { is: "same" };
        const saved = await write(next);
        next.done?.(saved);
        return saved;
      });
      last = waiting.catch(() => undefined); // the caller gets the error, and the next save its turn
      return waiting;
    },
    touch() {
      try {
        mkdirSync(dir, { recursive: true });
        writeFileSync(path, "");
      } catch (error) {
        log.warn({ err: error, path }, notStored);
      }
    },
    remove: () => removeFile(path),
    idle: () => last,
  };
}

async function fallBack(path: string, left: Content["onFullDisk"]): Promise<void> {
  if (left === "keep") return;
  if (left === "remove") return removeFile(path);
  if (left === "empty") return emptyFile(path).catch(() => removeFile(path));
  const { less } = left;
  await replaceFile(path, less).catch(async () => {
    await removeFile(path);
    await replaceFile(path, less).catch(() => undefined); // the room of the old content may suffice
  });
}

export const OWNER = z.object({ namespace: z.string(), name: z.string(), uid: z.string() });
type Owner = z.output<typeof OWNER>;

/**
 * Whether this very pod has written a file. A pod of a StatefulSet comes back under its name with another
 * uid, perhaps in another subset. Where the uid is unknown, the data folder has to end with the pod.
 */
export function isSamePod(owner: Owner, pod: Owner): boolean {
  return owner.namespace === pod.namespace && owner.name === pod.name && owner.uid === pod.uid;
}

/** All of the present format. A text of another one cannot be used. */
const FORMAT = 1;
const HEAD = z.object({ format: z.literal(FORMAT), pod: OWNER });

interface PodFileOptions {
  /** The warning in the log about a text that cannot be used. */
  readonly ignored: string;
  readonly onFullDisk: "keep" | "remove";
  readonly log: Logger;
}

/** What this very pod stores in a slot, as JSON of the schema. */
export function createPodFile<S extends z.ZodType<unknown, object>>(slot: Slot, schema: S, pod: Owner, options: PodFileOptions) {
  const { ignored, onFullDisk, log } = options;
  return {
    /** Undefined without a usable file. */
    async load(): Promise<z.output<S> | undefined> {
      try {
        const text = await slot.read();
        if (text === undefined) return undefined;
        const content: unknown = JSON.parse(text);
        return isSamePod(HEAD.parse(content).pod, pod) ? schema.parse(content) : undefined;
      } catch (error) {
        log.warn({ err: error, path: slot.path }, ignored);
        return undefined;
      }
    },
    /** As `save` of a slot: stores what `read` returns when its turn comes. */
    save: (read: () => Immutable<z.input<S>>): Promise<Saved> =>
      slot.save(() => ({ text: () => JSON.stringify({ format: FORMAT, pod, ...read() }), onFullDisk })),
    idle: (): Promise<unknown> => slot.idle(),
  };
}
