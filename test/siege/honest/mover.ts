// Moves a namespace between the operator's subsets for as long as a siege lasts: from the new label to the first read that the new owner's sidecar
// passes on.
import { NAMESPACES } from "../../../src/kube/client/resources.ts";
import { eventually } from "../../support/eventually.ts";
import { MOVING, OBJECT } from "../cluster-objects.ts";
import type { Series } from "../series.ts";
import type { World } from "../world.ts";
import { createHttpsClient } from "./https.ts";
import { type Pace, seriesNow } from "./pace.ts";

/** A move that takes longer counts as failed. */
const MOVE_MS = 60_000;
const REST_MS = 2_000;

export function startMover({ client, measured, decoy }: World): Pace & { readonly series: Series } {
  const series = seriesNow();
  const over = new AbortController();
  const clients = [measured, decoy].map(({ traffic, caPem }) =>
    createHttpsClient({ ...traffic, caPem, serverName: "localhost" }),
  );
  const move = async (owner: number) => {
    const labels = { "ns-type": owner === 1 ? "canary-1" : null };
    await client.patch(NAMESPACES, { name: MOVING }, { type: "merge", body: { metadata: { labels } } });
    const headers = { authorization: `Bearer ${(owner === 1 ? decoy : measured).token}` };
    const path = `/api/v1/namespaces/${MOVING}/configmaps/${OBJECT}`;
    await eventually(
      async () => {
        if (over.signal.aborted) return "";
        return clients[owner]?.ask({ path, headers, signal: AbortSignal.timeout(5_000) });
      },
      { withinMs: MOVE_MS, everyMs: 100 },
    );
  };
  const loop = (async () => {
    for (let turn = 1; !over.signal.aborted; turn++) {
      const startedMs = performance.now();
      const owner = turn % 2;
      const failure = await move(owner).then(
        () => undefined,
        (error: Error) => error.message.slice(0, 120),
      );
      // Also of a move that the end of the siege has cut short, which may be the one that never ends.
      series.add(startedMs, performance.now(), failure);
      await new Promise((resolve) => setTimeout(resolve, REST_MS));
    }
  })();

  return {
    series,
    into: () => undefined,
    async stop() {
      over.abort();
      await loop;
      for (const each of clients) each.close();
    },
  };
}
