// How many connections one pod may have: any pod of the cluster can have a token, and one alone must not take the places of all.
// Invariant: no more than that are kept, however many are proved in one moment; the newest are.
import type { Socket } from "node:net";

/** Of a connection, what is needed here. */
export type PodSocket = Pick<Socket, "destroyed" | "destroy" | "once">;

/** @param max for each pod */
export function createPodConnections(max: number): {
  /** This connection is that pod's, too. */
  keep(pod: string, socket: PodSocket): void;
} {
  const byPod = new Map<string, Set<PodSocket>>();
  return {
    keep(pod, socket) {
      const own = byPod.get(pod) ?? new Set();
      if (own.has(socket) || socket.destroyed) return;
      byPod.set(pod, own.add(socket));
      socket.once("close", () => {
        own.delete(socket);
        if (own.size === 0 && byPod.get(pod) === own) byPod.delete(pod);
      });
      for (const oldest of own) {
        if (own.size <= max) return;
        own.delete(oldest); // at once: it says only later that it is closed, and others are proved meanwhile
        oldest.destroy();
      }
    },
  };
}
