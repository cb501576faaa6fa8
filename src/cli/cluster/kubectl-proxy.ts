// Watches the cluster through `kubectl proxy`, so that plugins for credentials, OIDC, forward proxies and impersonation hold for as long
// as a page is open. Invariants: kubectl listens on a socket in a folder that only this user can enter, takes only reads of the kinds of
// Controller Mesh, and neither it nor the folder outlives this process, unless SIGKILL ends that.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep, waitingClock } from "../../base/clock.ts";
import { VERSION } from "../../base/version.ts";
import { createKubeClient } from "../../kube/client/client.ts";
import type { ClusterOptions, Watcher } from "../frame/cluster.ts";
import { failure, noAnswer } from "../frame/command.ts";
import { accessFlags } from "../frame/flags.ts";
import { startError, startKubectl, stop } from "./run-kubectl.ts";

const START_MS = 15_000;
/** A kubectl that has ended, for example since a plugin has failed, is started again. */
const AGAIN_MS = 2_000;
const READS_OF_THE_MESH = [
  "--reject-methods=^(POST|PUT|PATCH|DELETE|CONNECT)$",
  "--accept-paths=^/apis/ctrlmesh\\.[a-z.]+/",
  "--reject-paths=^/api/",
];

/** @throws MeshError `COMMAND_FAILED` with what kubectl says, if it cannot start */
export async function proxyWatcher(options: ClusterOptions): Promise<Watcher> {
  const folder = mkdtempSync(join(tmpdir(), "ctrlmesh-")); // with the rights 0700
  const socketPath = join(folder, "kubectl");
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  const closing = new AbortController();
  let child: ReturnType<typeof startKubectl> | undefined;
  const start = () => {
    const started = startProxy(socketPath, options);
    child = started.child;
    return started;
  };
  const keepRunning = async (ended: Promise<unknown>) => {
    for (let end = ended; !closing.signal.aborted; ) {
      await end;
      await sleep(waitingClock, AGAIN_MS, closing.signal).catch(() => {});
      if (closing.signal.aborted) return;
      const { child: started, ready, ended: next } = start();
      // The reads that fail meanwhile tell of it. One that does not begin to serve has not ended either.
      ready.catch(() => stop(started));
      end = next;
    }
  };
  const close = () => {
    closing.abort();
    if (child !== undefined) stop(child);
    process.off("exit", remove);
    remove();
  };
  const { ready, ended } = start();
  try {
    await ready;
  } catch (error) {
    close();
    throw error;
  }
  void keepRunning(ended);
  const connection = { server: "http://localhost", socketPath, token: () => "", userAgent: `ctrlmesh/${VERSION}` };
  const client = createKubeClient(connection, { clock: waitingClock });
  return {
    client,
    async close() {
      close();
      await client.close();
    },
  };
}

/** `ready` is when it listens; `ended` also when it could not start. */
function startProxy(socketPath: string, options: ClusterOptions) {
  const child = startKubectl(["proxy", `--unix-socket=${socketPath}`, ...READS_OF_THE_MESH, ...accessFlags(options)]);
  let complaint = "";
  const ready = new Promise<void>((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      if (/^Starting to serve/m.test(String(chunk))) resolve();
    });
    child.stderr.on("data", (chunk) => {
      complaint = `${complaint}${chunk}`.slice(-1_000);
    });
    child.on("error", (error) => reject(startError(error)));
    child.on("close", () => reject(failure(complaint.trim() || "kubectl proxy has ended")));
    AbortSignal.timeout(START_MS).addEventListener("abort", () => reject(noAnswer("kubectl proxy was not ready in time")));
  });
  return { child, ready, ended: new Promise<void>((resolve) => child.once("close", () => resolve())) };
}
