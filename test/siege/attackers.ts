// The attackers' processes, one for each side: with a low priority, so that the machine's processors go to
// the victims and to honest clients first.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import type { Attack, Side, Targets } from "./attack.ts";
import type { Order, Outcomes } from "./attacker.ts";

/** Behind all that is attacked and measured. */
const LOW_PRIORITY = 10;
/** Four pods of the cluster. */
const ADDRESSES = ["127.0.0.11", "127.0.0.12", "127.0.0.13", "127.0.0.14"];
const PROGRAM = fileURLToPath(new URL("./attacker.ts", import.meta.url));

export interface Attackers {
  /** Begins these, and ends the others. Of a side for which nothing changes, the attacks go on. */
  aim(attacks: readonly Attack[], targets: Targets): void;
  outcomes(): Promise<Outcomes>;
  stop(): Promise<void>;
}

/** Resolves once they have made all that they will send. */
export async function startAttackers(
  attacks: readonly Attack[],
  { seed, strength }: Pick<Order, "seed" | "strength">,
): Promise<Attackers> {
  const processes = new Map<Side, ChildProcess>();
  const orders = new Map<Side, string>();
  for (const side of new Set(attacks.map(({ on }) => on))) {
    const child = fork(PROGRAM, { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    child.setMaxListeners(0);
    processes.set(side, child);
  }
  const prepare = attacks.map(({ name }) => name);
  for (const child of processes.values()) {
    child.send({ prepare });
    await once(child, "message");
    setPriority(child.pid ?? 0, LOW_PRIORITY);
  }
  return {
    aim(chosen, targets) {
      for (const [side, child] of processes) {
        const names = chosen.filter(({ on }) => on === side).map(({ name }) => name);
        const key = JSON.stringify([names, side === "sidecar" ? targets.sidecar : ""]);
        if (orders.get(side) === key) continue;
        orders.set(side, key);
        child.send({ names, targets, addresses: ADDRESSES, seed, strength } satisfies Order);
      }
    },
    async outcomes() {
      const all = [...processes.values()].map(async (child) => {
        const answer = once(child, "message");
        child.send("report");
        return (await answer)[0] as Outcomes;
      });
      return Object.assign({}, ...(await Promise.all(all))) as Outcomes;
    },
    async stop() {
      for (const child of processes.values()) {
        const ended = once(child, "exit");
        if (child.exitCode === null && child.signalCode === null) {
          child.kill("SIGKILL");
          await ended;
        }
      }
    },
  };
}
