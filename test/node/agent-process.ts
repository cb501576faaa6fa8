// The test process's end of the agent: starts the agent in its namespaces, calls it, and passes it listening sockets of this
// namespace.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import type { AgentCalls, AnswerMessage, CallName } from "./agent-protocol.ts";

export interface Agent {
  readonly pid: number;
  call<N extends CallName>(name: N, takes: AgentCalls[N]["takes"]): Promise<AgentCalls[N]["gives"]>;
  /** Forwards a port of 127.0.0.1 to an address in the node's network. Resolves with the port. */
  forward(target: (port: number) => { readonly host: string; readonly port: number }): Promise<number>;
  stop(): Promise<void>;
}

const PROGRAM = fileURLToPath(new URL("./agent.ts", import.meta.url));
const STOP_MS = 20_000;

/** @param dir an empty folder for the agent's private mounts */
export async function startAgent(dir: string): Promise<Agent> {
  const child: ChildProcess = spawn("unshare", ["--mount", "--net", "--", process.execPath, PROGRAM, dir], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ended = once(child, "exit");
  const pending = new Map<number, PromiseWithResolvers<unknown>>([[0, Promise.withResolvers()]]);
  let calls = 0;
  child.on("message", (message) => {
    const { id, gives, error } = message as AnswerMessage;
    if (error === undefined) pending.get(id)?.resolve(gives);
    else pending.get(id)?.reject(new Error(error));
    pending.delete(id);
  });
  child.on("error", () => {}); // the event "exit" reports the end
  void ended.then(([code, signal]) => {
    for (const { reject } of pending.values()) reject(new Error(`the agent of the test node ended with ${code ?? signal}`));
  });
  const send = <T>(call: CallName, takes: unknown, server?: ReturnType<typeof createServer>): Promise<T> => {
    const id = ++calls;
    const answer = Promise.withResolvers<unknown>();
    pending.set(id, answer);
    child.send({ id, call, takes }, server, undefined, (error) => {
      if (error !== null) answer.reject(error);
    });
    return answer.promise as Promise<T>;
  };
  await pending.get(0)?.promise;
  return {
    pid: child.pid ?? 0,
    call: (name, takes) => send(name, takes),
    async forward(target) {
      const server = createServer({ pauseOnConnect: true });
      await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", () => resolve()));
      const address = server.address();
      const port = typeof address === "object" ? (address?.port ?? 0) : 0;
      await send("listen", target(port), server);
      server.close(); // only this process's copy; the agent keeps its own
      return port;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await send("stop", null).catch(() => {});
      if (child.connected) child.disconnect();
      await ended;
      clearTimeout(timer);
    },
  };
}
