// Joins JSON lists and Tables as they arrive.
import { parseResourceVersion, type Version } from "../../resource-version.ts";
import { asBuffer } from "../base/bytes.ts";
import { type ByteFilter, codecError, type Emit, type Keep, type ListJoiner } from "../base/types.ts";
import { createListFilter } from "./list-filter.ts";

const COMMA = Buffer.from(",");
const SPACE = /^[ \t\r\n]*/;

/** The bytes around the items. */
interface Frame {
  readonly head: Buffer;
  readonly tail: Buffer;
}

export function createListJoiner(version: Version): ListJoiner {
  return new JsonListJoiner(version);
}

class JsonListJoiner implements ListJoiner {
  readonly #version: Version;
  #first: Partial<Frame> = {};
  #hasItems = false;

  constructor(version: Version) {
    this.#version = version;
  }

  next(keep: Keep): ByteFilter {
    let part: "head" | "items" | "tail" = "head";
    let frame: Uint8Array[] = [];
    let hasOwnItems = false;
    let emitNow: Emit = () => undefined;
    const filter = createListFilter(keep, {
      onVersion: (version) => {
        if (parseResourceVersion(version) !== this.#version) throw differs("version");
      },
      onPart: (now) => {
        if (part !== (now === "items" ? "head" : "items")) throw differs("number of arrays");
        if (now === "items") this.#head(Buffer.concat(frame), emitNow);
        part = now;
        frame = [];
      },
    });
    const take = (slice: Uint8Array) => {
      if (part !== "items") {
        frame.push(slice);
        return;
      }
      if (!hasOwnItems && this.#hasItems) emitNow(COMMA);
      hasOwnItems = this.#hasItems = true;
      emitNow(slice);
    };
    return {
      push(chunk, emit) {
        emitNow = emit;
        filter.push(chunk, take);
      },
      end: () => {
        filter.end(take);
        if (part !== "tail") throw codecError("CODEC_NOT_A_LIST", "joining JSON lists: a document has no items or rows");
        this.#tail(Buffer.concat(frame));
      },
      get dropped() {
        return filter.dropped;
      },
      get kept() {
        return filter.kept;
      },
    };
  }

  end(emit: Emit): void {
    const { tail } = this.#first;
    if (tail === undefined) throw codecError("CODEC_TRUNCATED", "joining JSON lists: no list is complete");
    emit(tail);
  }

  #head(head: Buffer, emit: Emit): void {
    if (this.#first.head === undefined) {
      this.#first = { head };
      emit(head);
    } else if (!this.#first.head.equals(head)) throw differs("beginning");
  }

  // The space after the items depends on whether there are any.
  #tail(tail: Buffer): void {
    if (this.#first.tail === undefined) this.#first = { ...this.#first, tail };
    else if (textOf(this.#first.tail) !== textOf(tail)) throw differs("end");
  }
}

function textOf(tail: Buffer): string {
  return asBuffer(tail).toString("latin1").replace(SPACE, "");
}

function differs(what: string): Error {
  return codecError("CODEC_MALFORMED", `joining JSON lists: a list has another ${what}`);
}
