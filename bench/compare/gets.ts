// GETs of one object: over one connection without a pause, over one at 10 a second, and over 8.
import { getAtRate, keepConnection } from "../kept-connection.ts";
import { inTurns, restartAll, type Way } from "../way.ts";
import { connectAll } from "../way-connections.ts";
import { mediansOf, type Sample, samplesOf } from "./samples.ts";

/** Requests of a new process that count as cold. */
const COLD = 3_000;
/** Requests before those that count as warm. */
const BEFORE_WARM = 10_000;
const WARM = 3_000;
const PER_TURN = 100;
const PACED = { requests: 400, rate: 10, part: 130 } as const;
/** Requests over 8 connections. */
const LOADED = 3_000;

/** Each way in turns of 100 requests, so that a noisy machine disturbs all alike. Restarts the proxies, and leaves them warm. */
export async function coldAndWarm(ways: readonly Way[], path: string): Promise<Sample[]> {
  await restartAll(ways);
  const connections = await connectAll(ways);
  const ask = (requests: number) => connections.time({ path, turns: requests / PER_TURN, perTurn: PER_TURN });
  const cold = await ask(COLD);
  await ask(BEFORE_WARM - COLD);
  const warm = await ask(WARM);
  await connections.close();
  return [...samplesOf("warm", mediansOf(warm)), ...samplesOf("cold", mediansOf(cold))];
}

/** One way at a time, so that the ways do not disturb each other. Restarts the proxies. */
export async function paced(ways: readonly Way[], path: string, round: number): Promise<Sample[]> {
  const all = await inTurns(ways, round, async (way) => {
    await restartAll([way]);
    const { endpoint } = way;
    const connection = await keepConnection(endpoint);
    const times = await getAtRate(connection, path, PACED.requests, PACED.rate);
    await connection.close();
    return times;
  });
  const part = (from: number, to?: number) => mediansOf(new Map([...all].map(([way, times]) => [way, times.slice(from, to)])));
  return [...samplesOf("pacedFirst", part(0, PACED.part)), ...samplesOf("pacedLast", part(-PACED.part))];
}

/** @param row "eightCold" restarts the proxies first */
export async function eightConnections(
  ways: readonly Way[],
  path: string,
  round: number,
  row: "eightCold" | "eightWarm",
): Promise<Sample[]> {
  if (row === "eightCold") await restartAll(ways);
  const rates = await inTurns(ways, round, async ({ endpoint }) => {
    const connections = await Promise.all(Array.from({ length: 8 }, () => keepConnection(endpoint)));
    let left = LOADED;
    const start = performance.now();
    await Promise.all(
      connections.map(async ({ get }) => {
        while (left-- > 0) await get(path);
      }),
    );
    const seconds = (performance.now() - start) / 1000;
    for (const connection of connections) await connection.close();
    return LOADED / seconds;
  });
  return samplesOf(row, rates);
}
