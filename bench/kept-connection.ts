// One connection that stays open, as a client-go client has it. Handshakes are not measured.
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { JSON_TYPE } from "../src/kube/media-types.ts";
import { HTTP1 } from "./load.ts";
import type { Endpoint } from "./world.ts";

/** For an answer, or the rest of one. A list of 100,000 objects takes seconds. */
const MAX_WAIT_MS = 120_000;

export interface KeptConnection {
  /** Sends one GET and reads the answer to its end. @returns the time, in ms. @throws Error on any answer but 200 */
  get(path: string, accept?: string): Promise<number>;
  /** Sends one GET. @returns the parsed answer */
  getJson(path: string): Promise<unknown>;
  close(): Promise<void>;
}

/** One GET after the other, at most `rate` a second. @returns their times, in ms */
export async function getAtRate({ get }: KeptConnection, path: string, requests: number, rate: number): Promise<number[]> {
  const times: number[] = [];
  const start = performance.now();
  for (let request = 0; request < requests; request++) {
    const waitMs = start + (request * 1_000) / rate - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    times.push(await get(path));
  }
  return times;
}

export async function keepConnection({ url, caPem, token }: Endpoint): Promise<KeptConnection> {
  const pool = new Pool(url, {
    ...HTTP1,
    connections: 1,
    connect: { ca: caPem },
    bodyTimeout: MAX_WAIT_MS,
    headersTimeout: MAX_WAIT_MS,
  });
  const authorization = `Bearer ${token}`;
  const ask = async (path: string, accept: string) => {
    const answer = await pool.request({ method: "GET", path, headers: { authorization, accept } });
    if (answer.statusCode === 200) return answer.body;
    throw new Error(`GET ${path} at ${url}: ${answer.statusCode} ${await answer.body.text()}`);
  };
  const get = async (path: string, accept = JSON_TYPE) => {
    const start = performance.now();
    for await (const _ of await ask(path, accept)); // discarded
    return performance.now() - start;
  };
  await get("/version");
  return { get, getJson: async (path) => (await ask(path, JSON_TYPE)).json(), close: () => pool.close() };
}
