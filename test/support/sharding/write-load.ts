// Writes into all namespaces through the proxies of all pods, one write after the other for each pod, and keeps each answer. A pod takes part while
// its proxy is ready.
import { readFileSync } from "node:fs";
import type { PodRunner, RunnerPod } from "../pod-runner.ts";
import { createProbe } from "../probe.ts";

export interface LoadAnswer {
  readonly pod: string;
  readonly namespace: string;
  readonly code: number;
  /** Of a 503. */
  readonly why?: string;
}

export interface WriteLoad {
  readonly answers: readonly LoadAnswer[];
  /** @throws the first error of a request without an answer */
  stop(): Promise<void>;
}

const LOOK_MS = 50;
/** Between two writes of a pod, so that the pods have time for their work. */
const PAUSE_MS = 2;

/** @param name of the ConfigMap to patch, which exists in each of the namespaces */
export function startWriteLoad(runner: PodRunner, namespaces: readonly string[], name: string): WriteLoad {
  const answers: LoadAnswer[] = [];
  const failures: unknown[] = [];
  const writers = new Map<string, Promise<void>>();
  let stopped = false;

  async function write(pod: RunnerPod): Promise<void> {
    const { server, caFile, token } = pod.processes.access ?? { server: "", caFile: "", token: "" };
    const probe = createProbe({ url: server, caPem: readFileSync(caFile, "utf8"), token, keep: false });
    const isOver = () => stopped || pod.isEnding;
    for (let round = 0; !isOver(); round++) {
      for (const namespace of namespaces) {
        if (isOver()) break;
        const body = { data: { [pod.name]: String(round) } };
        const answer = await probe
          .send("PATCH", `/api/v1/namespaces/${namespace}/configmaps/${name}`, body)
          .catch((error: unknown) => {
            if (!isOver()) failures.push(error);
          });
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        if (answer === undefined || pod.isEnding) continue;
        const why = answer.status === 503 ? { why: answer.body.toString() } : {};
        answers.push({ pod: pod.name, namespace, code: answer.status, ...why });
      }
    }
    await probe.close();
  }

  const looking = (async () => {
    while (!stopped) {
      for (const pod of runner.pods.values()) {
        const { access, isProxyReady } = pod.processes;
        if (writers.has(pod.uid) || access === undefined || !isProxyReady || pod.isEnding) continue;
        writers.set(pod.uid, write(pod));
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  })();

  return {
    answers,
    async stop() {
      stopped = true;
      await looking;
      await Promise.all(writers.values());
      if (failures.length > 0) throw failures[0];
    },
  };
}
