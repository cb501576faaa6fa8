// Reads who holds a leader-election lock from its body: Lease.spec.holderIdentity, or the annotation of client-go's old
// ConfigMap and Endpoints locks. Only for knowing who leads; nothing is decided by it about what may pass. Pure.
import { z } from "zod";
import { readEnvelope } from "../../kube/codec/protobuf-object.ts";
import { BYTES, fieldsOf } from "../../kube/codec/protobuf-wire.ts";
import type { Encoding } from "../../kube/codec/types.ts";

/** Of k8s.io/client-go/tools/leaderelection/resourcelock. */
export const LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader";

const lease = z.object({ spec: z.object({ holderIdentity: z.string().nullish() }).nullish() });
const annotated = z.object({ metadata: z.object({ annotations: z.record(z.string(), z.string()) }) });
const record = z.object({ holderIdentity: z.string() });

/** The holder; "" if the lock says nobody holds it, undefined if the body says nothing about it or cannot be read. */
export function holderOf(encoding: Encoding, resource: string, body: Uint8Array): string | undefined {
  try {
    return encoding === "json" ? holderInJson(resource, body) : holderInProtobuf(resource, readEnvelope(body).raw);
  } catch {
    return undefined;
  }
}

function holderInJson(resource: string, body: Uint8Array): string | undefined {
  const object: unknown = JSON.parse(Buffer.from(body).toString("utf8"));
  if (resource !== "leases") return holderInRecord(annotated.parse(object).metadata.annotations[LEADER_ANNOTATION]);
  const { spec } = lease.parse(object);
  // A patch that does not name the holder leaves it.
  return spec === undefined || spec === null || spec.holderIdentity === undefined ? undefined : (spec.holderIdentity ?? "");
}

// k8s.io/api/coordination/v1: Lease.spec = 2, LeaseSpec.holderIdentity = 1. metav1: metadata = 1, annotations = 12.
function holderInProtobuf(resource: string, raw: Uint8Array): string | undefined {
  if (resource === "leases") {
    const [spec] = messages(raw, 2);
    const [holder] = spec === undefined ? [] : messages(spec, 1);
    return holder?.toString("utf8");
  }
  for (const metadata of messages(raw, 1)) {
    for (const entry of messages(metadata, 12)) {
      if (messages(entry, 1)[0]?.toString("utf8") === LEADER_ANNOTATION)
        return holderInRecord(messages(entry, 2)[0]?.toString("utf8"));
    }
  }
  return undefined;
}

function messages(message: Uint8Array, number: number): Buffer[] {
  const found: Buffer[] = [];
  for (const field of fieldsOf(message)) if (field.number === number && field.wireType === BYTES) found.push(field.value());
  return found;
}

function holderInRecord(text: string | undefined): string | undefined {
  return text === undefined ? undefined : record.parse(JSON.parse(text)).holderIdentity;
}
