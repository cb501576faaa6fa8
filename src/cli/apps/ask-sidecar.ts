// Asks the debug pages of a sidecar, over a forwarded port.
import { z } from "zod";
import { HEALTH_PORT } from "../../api/injected-pod.ts";
import type { ObjectRef } from "../../kube/client/resource.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure, noAnswer } from "../frame/command.ts";

const ANSWER_MS = 5_000;

/** A debug page, with its query. */
export interface Page<T> {
  /** For example "/debug/owner?namespace=team-b". */
  readonly path: string;
  readonly schema: z.ZodType<T>;
  /** How long the page waits before it answers; default 0. */
  readonly waitsMs?: number;
}

/** @throws MeshError `COMMAND_FAILED`, `NO_ANSWER` */
export async function askSidecar<T>(cluster: Cluster, pod: ObjectRef, { path, schema, waitsMs = 0 }: Page<T>): Promise<T> {
  const port = await cluster.forward(pod, HEALTH_PORT);
  try {
    const reply = await fetch(`${port.url}${path}`, { signal: AbortSignal.timeout(waitsMs + ANSWER_MS) }).catch(
      (error: unknown) => {
        throw noAnswer(`the sidecar of pod ${pod.name} does not answer`, error);
      },
    );
    const text = await reply.text();
    if (reply.status === 404) throw failure(`the sidecar of pod ${pod.name} is older than this page: restart the pod`);
    if (!reply.ok) throw failure(`the sidecar of pod ${pod.name} answers ${reply.status}: ${text.slice(0, 200)}`);
    const { data, success } = z.string().transform(parsed).pipe(schema).safeParse(text);
    if (!success) throw failure(`the sidecar of pod ${pod.name} gives an answer of another version`);
    return data;
  } finally {
    port.close();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
