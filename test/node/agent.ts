// The agent of the test node: a process that cluster.ts starts in new network and mount namespaces. It creates the node's
// network, forwards connections of the test process, and then runs the node. Nothing outlives it: the kernel ends its namespaces,
// mounts and containers with it, and it ends with the test process.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { connect, type Server, type Socket } from "node:net";
import type { AgentCalls, AnswerMessage, CallMessage, CallName, PodInfo } from "./agent-protocol.ts";
import { setUpNode } from "./network.ts";
import { findWorker, startNode, type TestNode } from "./node.ts";
import type { PodWorker } from "./pod-worker.ts";

type Handlers = {
  readonly [N in CallName]: (takes: AgentCalls[N]["takes"], server: Server | undefined) => Promise<AgentCalls[N]["gives"]>;
};

const [stateDir = ""] = process.argv.slice(2);
let node: TestNode | undefined;

const handlers: Handlers = {
  async run(settings) {
    node = await startNode(settings, stateDir);
    return null;
  },
  async listen({ host, port }, server) {
    server?.on("connection", (client: Socket) => {
      const target = connect({ host, port });
      for (const [from, to] of [
        [client, target],
        [target, client],
      ] as const) {
        from.setNoDelay(true);
        from.pipe(to);
        from.on("error", () => to.destroy());
        from.on("close", () => to.destroy());
      }
    });
    return null;
  },
  async images(images) {
    node?.addImages(images);
    return null;
  },
  async containers({ namespace, pod }): Promise<PodInfo> {
    const worker = find(namespace, pod);
    return {
      podIP: worker.podIP,
      containers: worker.containers.map(({ name, process: current, status, logFile }) => ({
        name,
        pid: current?.pid ?? 0,
        restartCount: status.restartCount,
        logFile,
      })),
    };
  },
  async exec({ namespace, pod, container, argv }) {
    const found = find(namespace, pod).containers.find(({ name }) => name === container)?.process;
    if (found === undefined) throw new Error(`container ${container} of pod ${namespace}/${pod} does not run`);
    return found.exec(argv, 60_000);
  },
  async stop() {
    await node?.stop();
    return null;
  },
};

function find(namespace: string, name: string): PodWorker {
  const worker = findWorker(node?.workers.values() ?? [], namespace, name);
  if (worker === undefined) throw new Error(`pod ${namespace}/${name} is not on the node`);
  return worker;
}

async function answer({ id, call, takes }: CallMessage, server: Server | undefined): Promise<void> {
  const handle = handlers[call] as (takes: unknown, server: Server | undefined) => Promise<unknown>;
  const message: AnswerMessage = await handle(takes, server).then(
    (gives) => ({ id, gives }),
    (error: Error) => ({ id, error: error.message }),
  );
  process.send?.(message);
}

process.on("message", (message, server) => void answer(message as CallMessage, server as Server | undefined));
// The test process has ended or is done. The kernel ends the containers with this process.
process.on("disconnect", () => process.exit(0));
process.on("SIGTERM", () => process.exit(0));
process.on("SIGINT", () => {}); // the test process handles Ctrl-C and ends the agent

mkdirSync(stateDir, { recursive: true });
execFileSync("mount", ["-t", "tmpfs", "-o", "mode=755", "tmpfs", stateDir]);
await setUpNode();
process.send?.({ id: 0 } satisfies AnswerMessage);
