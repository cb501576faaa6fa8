// The listener of one pod, with fixed routes: the namespace "own" is the default subset's, and "other" the canary's. Run by webhooks.ts:
// node bench/webhooks/pod.ts CONFIG-FILE
import { readFileSync } from "node:fs";
import type { PodPeer } from "../../src/mesh/contract/peer-type.ts";
import { type ListenerConfig, startListener } from "../../test/support/review-listener.ts";
import { snapshot, subset, table } from "../../test/support/route-table.ts";

setInterval(() => undefined, 60_000); // the listener is in a thread that does not keep the process alive
const config = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as ListenerConfig & { readonly peers: readonly PodPeer[] };
const { enforcer } = await startListener(config, { current: config.peers, onChange: () => undefined });
enforcer.enforce(snapshot(table([subset("canary")], { own: [], other: [0] }), { subset: config.peer.subset }));
process.stdout.write(`${JSON.stringify({ port: config.port })}\n`);
