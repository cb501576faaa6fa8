// Turns lists into watch events: ADDED or DELETED for each kept object. The bytes of an object stay, and a
// built-in object gets the type that it lacks inside a list. Invariant: a reader holds no more than one chunk
// and one object.
import { parseResourceVersion, type Version } from "../resource-version.ts";
import {
  codecError,
  type Emit,
  type Encoding,
  isListType,
  type Keep,
  type ListFilter,
  type ListJoiner,
  type ObjectType,
} from "./base/types.ts";
import { codecOf, createListFilter } from "./codec.ts";

export interface ListEvent {
  readonly version: bigint;
  readonly frame: Uint8Array;
}

/**
 * Reads a list as it arrives, and calls `onEvent` for each kept object in order. Its methods throw the errors
 * of `createListFilter`; `CODEC_MALFORMED` for a list of another version; `CODEC_NOT_A_LIST` for a Table and
 * for a list whose objects have several kinds.
 */
function createEventReader(
  encoding: Encoding,
  eventType: "ADDED" | "DELETED",
  version: bigint,
  keep: Keep,
  onEvent: (event: ListEvent) => void,
) {
  let listType: Partial<ObjectType> = {};
  let frameOf: ((element: Uint8Array) => Uint8Array) | undefined;
  const filter = createListFilter(encoding, keep, {
    versions: true,
    maxHeldBytes: 0, // the list itself is not needed
    onType(part) {
      for (const key of Object.keys(part)) if (key in listType) throw malformed(`the key ${key} occurs twice`);
      listType = { ...listType, ...part };
    },
    onVersion(own) {
      if (own !== version) throw malformed("its version is not the requested one");
    },
    rewrite(element, meta, part) {
      if (part === "row") throw codecError("CODEC_NOT_A_LIST", "reading a list: it is a Table");
      const itemVersion = parseResourceVersion(meta.resourceVersion);
      if (itemVersion === undefined || itemVersion > version)
        throw malformed("an object has no version, or a later one than the list");
      // A list of custom resources has its type after the items.
      frameOf ??= codecOf(encoding).createFrameEncoder(eventType, () => itemType(listType));
      onEvent({ version: itemVersion, frame: frameOf(element) });
      return element;
    },
  });
  const ignore: Emit = () => undefined;
  return {
    push: (chunk: Uint8Array) => filter.push(chunk, ignore),
    /** Returns the type of the items. */
    end(): ObjectType {
      filter.end(ignore);
      return itemType(listType);
    },
    counts: filter.counts,
    get heldBytes() {
      return filter.heldBytes;
    },
  };
}

/** The kept objects of a whole list at `version`, and the type of its items. */
export function listEvents(
  encoding: Encoding,
  eventType: "ADDED" | "DELETED",
  body: Uint8Array,
  version: bigint,
  keep: Keep,
): { readonly events: readonly ListEvent[]; readonly type: ObjectType } {
  const events: ListEvent[] = [];
  const reader = createEventReader(encoding, eventType, version, keep, (event) => events.push(event));
  reader.push(body);
  return { events, type: reader.end() };
}

/** @param isInitialEnd the bookmark ends the initial events */
export function bookmarkFrame(
  encoding: Encoding,
  type: ObjectType,
  version: bigint,
  { isInitialEnd = false }: { readonly isInitialEnd?: boolean } = {},
): Uint8Array {
  return codecOf(encoding).encodeBookmark(type, String(version), isInitialEnd);
}

/** Joins lists of one version into the beginning of a watch: ADDED events, and the bookmark after them. */
export function createEventJoiner(
  encoding: Encoding,
  version: Version,
  { hasBookmark }: { readonly hasBookmark: boolean },
): ListJoiner {
  let type: ObjectType | undefined;
  return {
    next(keep: Keep): ListFilter {
      let frames: Uint8Array[] = [];
      const reader = createEventReader(encoding, "ADDED", version, keep, ({ frame }) => frames.push(frame));
      return {
        get heldBytes() {
          return reader.heldBytes;
        },
        push(chunk, emit) {
          reader.push(chunk);
          if (frames.length > 0) emit(Buffer.concat(frames));
          frames = [];
        },
        end() {
          type = reader.end();
        },
        counts: reader.counts,
      };
    },
    end(emit: Emit) {
      if (type === undefined) throw codecError("CODEC_TRUNCATED", "joining lists as events: no list is complete");
      if (hasBookmark) emit(bookmarkFrame(encoding, type, version, { isInitialEnd: true }));
    },
  };
}

// PodList => Pod
function itemType({ kind: listKind = "", apiVersion = "" }: Partial<ObjectType>): ObjectType {
  const kind = listKind.slice(0, -"List".length);
  if (!isListType({ kind: listKind, apiVersion }) || kind === "" || apiVersion === "")
    throw codecError("CODEC_NOT_A_LIST", `reading a list: its kind is ${JSON.stringify(listKind)}`);
  return { apiVersion, kind };
}

function malformed(what: string): Error {
  return codecError("CODEC_MALFORMED", `reading a list: ${what}`);
}
