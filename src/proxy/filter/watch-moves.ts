// Which moves the client of a live watch has not been sent. Invariant: what counts as sent is either in the
// events of the watch, or the end of the watch makes the client list again.
import { NEVER, type Version } from "../../kube/resource-version.ts";
import { hasMoved, type Known } from "../../mesh/moves/known.ts";
import type { MoveLog } from "../../mesh/moves/move-log.ts";
import type { ResourceLog } from "../../mesh/moves/resource-log.ts";
import { isHiddenBy } from "../../mesh/ownership/plan-query.ts";
import type { SentRequest } from "./sent-request.ts";

/** `nothing`: the watch goes on. `moved`: another watch may take over from `known`. `expired`: the client has to list. */
export type WatchMove = { readonly kind: "nothing" | "expired" } | { readonly kind: "moved"; readonly known: Known };

export class WatchMoves {
  readonly #request: SentRequest;
  readonly #moves: Pick<MoveLog, "of">;
  /** The client was sent all moves up to this position of the move log. */
  #told: number;

  constructor(request: SentRequest, moves: Pick<MoveLog, "of">) {
    this.#request = request;
    this.#moves = moves;
    this.#told = request.told;
  }

  /**
   * The moves since the watch was sent.
   * @param version of the last event that the client saw
   */
  atStart(version: Version | undefined): WatchMove {
    const { told, version: from } = this.#request;
    if (this.#log.position === told) return { kind: "nothing" };
    return from === undefined ? this.#hidden() : this.since(version);
  }

  since(version: Version | undefined): WatchMove {
    const { collection, departed } = this.#request;
    const known: Known = { version: version ?? NEVER, told: this.#told, departed };
    const due = this.#log.since(collection, known);
    if (due.kind === "expired") return due;
    if (hasMoved(due)) return { kind: "moved", known };
    return this.#tellAll(); // The last events of a departed namespace still come.
  }

  // A watch that begins with the whole state shows moves, unless the API server was asked to hide them.
  #hidden(): WatchMove {
    const { collection, told, serverFilter } = this.#request;
    const due = this.#log.since(collection, { version: NEVER, told });
    const isHidden = due.kind === "moved" && due.moved.some((name) => isHiddenBy(serverFilter, name));
    return due.kind === "expired" || isHidden ? { kind: "expired" } : this.#tellAll();
  }

  get #log(): ResourceLog {
    return this.#moves.of(this.#request.collection);
  }

  #tellAll(): WatchMove {
    this.#told = this.#log.position;
    return { kind: "nothing" };
  }
}
