// Writes a pod's status after every change: the newest status, one write at a time, until the API server has stored it. The patch merges
// conditions by type, so those of other writers stay.
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus } from "../../src/kube/status.ts";
import type { PodWorker } from "./pod-worker.ts";
import { pause } from "./probes.ts";

export interface StatusReporter {
  /** Call when the status may have changed. */
  update(): void;
  /** Resolves once the current status is written, or the pod's object is deleted. */
  settled(): Promise<void>;
}

const RETRY_MS = 300;

export function createStatusReporter(client: KubeClient, worker: PodWorker, signal: AbortSignal): StatusReporter {
  let written = "";
  let writing: Promise<void> | undefined;

  async function write(): Promise<void> {
    const { namespace = "", name = "", uid = "" } = worker.pod.metadata;
    while (!signal.aborted) {
      const status = worker.status();
      const text = JSON.stringify(status);
      if (text === written) return;
      try {
        await client.request({
          method: "PATCH",
          path: `/api/v1/namespaces/${namespace}/pods/${name}/status`,
          headers: { "content-type": "application/strategic-merge-patch+json" },
          body: { metadata: { uid }, status },
        });
        written = text;
      } catch (error) {
        if (isStatus(error, "NotFound", "Conflict")) return;
        await pause(RETRY_MS, signal); // the API server may be down
      }
    }
  }

  const begin = () => {
    writing ??= Promise.resolve()
      .then(write)
      .finally(() => {
        writing = undefined;
      });
    return writing;
  };
  return {
    update: () => void begin(),
    async settled() {
      await begin();
      await begin(); // the first may have started before the last change
    },
  };
}
