// The other pods of an app, as a resource type: those to which a proxy may forward reviews of the operator's
// webhooks. The body is JSON; this schema is its contract. No route waits for peers.
import { z } from "zod";
import type { PodRef } from "./messages.ts";
import { decodeJson, digestOf, type ResourceType, type Versioned } from "./resource-type.ts";

/** A pod of the app with a proxy. */
export interface PodPeer extends PodRef {
  readonly address: string;
  readonly subset: string;
  /** The pod is ready and does not terminate. */
  readonly isReady: boolean;
  /** The pod's proxy is older than the app's webhooks, so API servers call its operator directly. */
  readonly isDirect?: true | undefined;
}

export type PeersResource = Versioned & { readonly peers: readonly PodPeer[] };

const peerSchema: z.ZodType<PodPeer> = z.object({
  namespace: z.string().min(1),
  name: z.string().min(1),
  uid: z.string().min(1),
  address: z.union([z.ipv4(), z.ipv6()]),
  subset: z.string(),
  isReady: z.boolean(),
  isDirect: z.literal(true).optional(),
});
const bodySchema = z.object({ peers: z.array(peerSchema) });

export const PEERS: ResourceType<PeersResource> = {
  name: "peers",
  encode: ({ peers }) => encoded(peers),
  decode: (body, head) => ({ ...head, peers: decodeJson(body, head, bodySchema).peers }),
};

export function peersDigest(peers: readonly PodPeer[]): string {
  return digestOf(encoded(peers));
}

function encoded(peers: readonly PodPeer[]): Buffer {
  return Buffer.from(JSON.stringify({ peers }));
}
