// One open connection to each way, and the times of the same GETs over all of them in turns.
import { keepConnection } from "./kept-connection.ts";
import { inTurns, type Way } from "./way.ts";

export interface Gets {
  readonly path: string;
  readonly accept?: string;
  readonly turns: number;
  /** Requests to one way before it is the turn of the next. Default 1. */
  readonly perTurn?: number;
}

export interface WayConnections {
  /** @returns the times of each way, in ms */
  time(gets: Gets): Promise<ReadonlyMap<Way, readonly number[]>>;
  close(): Promise<void>;
}

export async function connectAll(ways: readonly Way[]): Promise<WayConnections> {
  const open = await Promise.all(ways.map(async (way) => ({ way, connection: await keepConnection(way.endpoint) })));
  return {
    async time({ path, accept, turns, perTurn = 1 }) {
      const times = new Map(ways.map((way) => [way, [] as number[]]));
      for (let turn = 0; turn < turns; turn++) {
        await inTurns(open, turn, async ({ way, connection }) => {
          for (let request = 0; request < perTurn; request++) times.get(way)?.push(await connection.get(path, accept));
        });
      }
      return times;
    },
    async close() {
      for (const { connection } of open) await connection.close();
    },
  };
}
