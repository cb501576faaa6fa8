// A watch whose client lists again after a 410, as an informer does. The client knows the objects of its last list and of the events since;
// without a list, those of the events.
import type { Probe } from "../../support/probe.ts";
import { readWatch } from "../../support/slices.ts";
import { type Cell, keyOf, openCell, takeVersion } from "./cells.ts";
import { isExpired } from "./reference.ts";

export interface FollowedCell {
  /** The cell with its present watch. */
  readonly cell: Cell;
  /** Lists and watches again after a 410. @throws Error if the watch has ended in another way */
  goOn(): Promise<void>;
  /** The objects that the client knows, as namespace/name. */
  known(): Set<string>;
  /** The number of lists since the last call. */
  takeLists(): number;
}

export function followCell(probe: Probe, first: Cell): FollowedCell {
  let cell = first;
  let lists = 0;
  return {
    get cell() {
      return cell;
    },
    async goOn() {
      const { scope, origin, encoding, stream } = cell;
      if (!stream.ended()) return;
      if (!isExpired(stream)) throw new Error(`the watch of ${scope.name} from a ${origin} in ${encoding} was closed`);
      const start = await takeVersion(probe, scope, "list", encoding, "");
      lists++;
      cell = await openCell(probe, { ...start, origin });
    },
    known() {
      const known = new Set(cell.listed);
      for (const event of readWatch(cell.stream.contentType, cell.stream.bytes())) {
        if (event.type === "DELETED") known.delete(keyOf(event));
        else if (event.type === "ADDED" || event.type === "MODIFIED") known.add(keyOf(event));
      }
      return known;
    },
    takeLists() {
      const taken = lists;
      lists = 0;
      return taken;
    },
  };
}
