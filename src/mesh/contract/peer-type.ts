// The other pods of an app, as a resource type: those to which a proxy may forward reviews of the operator's
// webhooks. No route waits for peers.
import { z } from "zod";
import type { Immutable } from "../../base/json.ts";
import { jsonType, type Versioned } from "./resource-type.ts";

const peerSchema = z.object({
  namespace: z.string().min(1),
  name: z.string().min(1),
  uid: z.string().min(1),
  address: z.union([z.ipv4(), z.ipv6()]),
  subset: z.string(),
  /** The pod is ready and does not terminate. */
  isReady: z.boolean(),
  /** The pod's proxy is older than the app's webhooks, so API servers call its operator directly. */
  isDirect: z.literal(true).optional(),
});
const bodySchema = z.object({ peers: z.array(peerSchema) });

/** A pod of the app with a proxy. */
export type PodPeer = Immutable<z.output<typeof peerSchema>>;
export type PeersResource = Versioned & Immutable<z.output<typeof bodySchema>>;

export const PEERS = jsonType("peers", bodySchema);
