// Joins JSON lists and Tables as they arrive.
import type { Version } from "../../resource-version.ts";
import { codecError, type Emit, type Keep, type ListFilter, type ListJoiner } from "../base/types.ts";
import { createListFilter } from "./list-filter.ts";

const COMMA = Buffer.from(",");
const SPACE = /^[ \t\r\n]*/;

export function createListJoiner(version: Version): ListJoiner {
  // The bytes of the first list before and after its items. All lists must have the same.
  let firstHead: Buffer | undefined;
  let firstTail: Buffer | undefined;
  let hasItems = false;

  function next(keep: Keep): ListFilter {
    let part: "head" | "items" | "tail" = "head";
    let otherSlices: Uint8Array[] = [];
    let otherBytes = 0;
    let listHasItems = false;
    let emitNow: Emit = () => undefined;
    const filter = createListFilter(keep, {
      onVersion(own) {
        if (own !== version) throw differs("version");
      },
      onPart(now) {
        if (part !== (now === "items" ? "head" : "items")) throw differs("number of arrays");
        if (now === "items") endHead(Buffer.concat(otherSlices), emitNow);
        part = now;
        otherSlices = [];
        otherBytes = 0;
      },
    });
    const takeSlice = (slice: Uint8Array) => {
      if (part !== "items") {
        otherSlices.push(slice);
        otherBytes += slice.length;
        return;
      }
      if (!listHasItems && hasItems) emitNow(COMMA);
      listHasItems = hasItems = true;
      emitNow(slice);
    };
    return {
      counts: filter.counts,
      get heldBytes() {
        return filter.heldBytes + otherBytes;
      },
      push(chunk, emit) {
        emitNow = emit;
        filter.push(chunk, takeSlice);
      },
      end() {
        filter.end(takeSlice);
        if (part !== "tail") throw codecError("CODEC_NOT_A_LIST", "joining JSON lists: a document has no items or rows");
        const tail = Buffer.concat(otherSlices);
        firstTail ??= tail;
        if (textOf(firstTail) !== textOf(tail)) throw differs("end");
      },
    };
  }

  function endHead(head: Buffer, emit: Emit): void {
    if (firstHead === undefined) emit(head);
    firstHead ??= head;
    if (!firstHead.equals(head)) throw differs("beginning");
  }

  return {
    next,
    end(emit) {
      if (firstTail === undefined) throw codecError("CODEC_TRUNCATED", "joining JSON lists: no list is complete");
      emit(firstTail);
    },
  };
}

// The space at the start depends on whether the list has items.
function textOf(tail: Buffer): string {
  return tail.toString("latin1").replace(SPACE, "");
}

function differs(what: string): Error {
  return codecError("CODEC_MALFORMED", `joining JSON lists: a list has another ${what}`);
}
