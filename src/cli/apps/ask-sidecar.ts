// Asks the debug pages of a sidecar, over a forwarded port.
import type { z } from "zod";
import { HEALTH_PORT } from "../../api/injected-pod.ts";
import { isMeshError } from "../../base/errors.ts";
import type { ObjectRef } from "../../kube/client/resource.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure, noAnswer } from "../frame/command.ts";

const ANSWER_MS = 5_000;
/** Far more than a page has. Ten pods may answer at once. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

/** A debug page, with its query. */
export interface Page<T> {
  /** For example "/debug/owner?namespace=team-b". */
  readonly path: string;
  readonly schema: z.ZodType<T>;
  /** The schema reads the text of the page; default: its JSON. */
  readonly isText?: boolean;
  /** How long the page waits before it answers; default 0. */
  readonly waitsMs?: number;
}

type Ask = <T>(page: Page<T>) => Promise<T>;

/** @throws MeshError `COMMAND_FAILED`, `NO_ANSWER` */
export function askSidecar<T>(cluster: Cluster, pod: ObjectRef, page: Page<T>): Promise<T> {
  return withSidecar(cluster, pod, (ask) => ask(page));
}

/** Asks several pages over one port. @throws MeshError `COMMAND_FAILED`, `NO_ANSWER` */
export async function withSidecar<T>(cluster: Cluster, pod: ObjectRef, use: (ask: Ask) => Promise<T>): Promise<T> {
  const port = await cluster.forward(pod, HEALTH_PORT);
  let length = 0;
  try {
    return await use(async (page) => {
      const reply = await fetched(`${port.url}${page.path}`, pod, (page.waitsMs ?? 0) + ANSWER_MS);
      length += reply.text.length;
      if (length > MAX_ANSWER_BYTES)
        throw failure(`the answers of the sidecar of pod ${pod.name} are longer than 32 MB together`);
      return readPage(reply, pod, page);
    });
  } finally {
    port.close();
  }
}

interface Reply {
  readonly status: number;
  readonly text: string;
}

function readPage<T>(reply: Reply, pod: ObjectRef, { schema, isText = false }: Page<T>): T {
  const { text } = reply;
  if (reply.status === 404) throw failure(`the sidecar of pod ${pod.name} is older than this page: restart the pod`);
  if (reply.status !== 200) throw failure(`the sidecar of pod ${pod.name} answers ${reply.status}: ${text.slice(0, 200)}`);
  const { data, success } = schema.safeParse(isText ? text : parsed(text));
  if (!success) throw failure(`the sidecar of pod ${pod.name} gives an answer of another version`);
  return data;
}

/** Redirects are not followed: a pod must not choose what this machine asks. */
async function fetched(url: string, pod: ObjectRef, timeoutMs: number): Promise<Reply> {
  try {
    const reply = await fetch(url, { signal: AbortSignal.timeout(timeoutMs), redirect: "manual" });
    return { status: reply.status, text: await boundedText(reply, pod) };
  } catch (error) {
    if (isMeshError(error, "COMMAND_FAILED")) throw error;
    throw noAnswer(`the sidecar of pod ${pod.name} does not answer`, error);
  }
}

async function boundedText({ body }: Response, pod: ObjectRef): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw failure(`the answer of the sidecar of pod ${pod.name} is longer than 32 MB`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
