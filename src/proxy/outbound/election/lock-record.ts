// Reads the holder and the duration of a leader-election lock from its body: Lease.spec, or the annotation of
// client-go's old ConfigMap and Endpoints locks. Pure. No request is decided by it.
import { z } from "zod";
import type { Encoding } from "../../../kube/codec/codec.ts";
import { readEnvelope } from "../../../kube/codec/protobuf/envelope.ts";
import { BYTES, fieldsOf } from "../../../kube/codec/protobuf/wire.ts";

/** From k8s.io/client-go/tools/leaderelection/resourcelock. */
export const LEADER_ANNOTATION = "control-plane.alpha.kubernetes.io/leader";

/** A field is undefined if the body does not have it. */
export interface LockRecord {
  /** "" if the lock has no holder. */
  readonly holder: string | undefined;
  /** For how long a renewal holds. */
  readonly durationMs: number | undefined;
  /** The time of the last renewal, by the holder's clock; only to distinguish two renewals. */
  readonly renewedMs: number | undefined;
}

export const NO_RECORD: LockRecord = { holder: undefined, durationMs: undefined, renewedMs: undefined };

// client-go writes the same names into LeaseSpec and into the record of its annotation.
const record = z.object({
  holderIdentity: z.string().nullish(),
  leaseDurationSeconds: z.number().nullish(),
  renewTime: z.string().nullish().catch(undefined),
});
const lease = z.object({ spec: record.nullish() });
const annotated = z.object({ metadata: z.object({ annotations: z.record(z.string(), z.string().nullable()) }) });

/** @param whole false for a patch, in which a missing holder means an unchanged holder */
export function readLockRecord(encoding: Encoding, resource: string, body: Uint8Array, whole: boolean): LockRecord {
  try {
    const found =
      encoding === "protobuf"
        ? recordInProtobuf(resource, readEnvelope(body).raw)
        : recordOfObject(resource, JSON.parse(Buffer.from(body).toString("utf8")));
    return whole && resource === "leases" && found.holder === undefined ? { ...found, holder: "" } : found;
  } catch {
    return NO_RECORD;
  }
}

function recordOfObject(resource: string, object: unknown): LockRecord {
  if (resource === "leases") return recordOf(lease.safeParse(object).data?.spec ?? {});
  const annotation = annotated.safeParse(object).data?.metadata.annotations[LEADER_ANNOTATION];
  return recordInAnnotation(annotation === null ? "" : annotation);
}

// In a patch, null removes the holder.
function recordOf({ holderIdentity, leaseDurationSeconds, renewTime }: z.output<typeof record>): LockRecord {
  const renewedMs = Date.parse(renewTime ?? "");
  return {
    holder: holderIdentity === null ? "" : holderIdentity,
    durationMs: milliseconds(leaseDurationSeconds),
    renewedMs: Number.isNaN(renewedMs) ? undefined : renewedMs,
  };
}

function recordInAnnotation(text: string | undefined): LockRecord {
  if (text === undefined) return NO_RECORD;
  if (text === "") return { ...NO_RECORD, holder: "" };
  try {
    return recordOf(record.parse(JSON.parse(text)));
  } catch {
    return NO_RECORD;
  }
}

// k8s.io/api/coordination/v1: Lease.spec = 2, LeaseSpec.holderIdentity = 1, .leaseDurationSeconds = 2,
// .renewTime = 4. metav1: metadata = 1, annotations = 12; MicroTime.seconds = 1, .nanos = 2.
function recordInProtobuf(resource: string, raw: Uint8Array): LockRecord {
  if (resource === "leases") {
    const [spec] = messages(raw, 2);
    if (spec === undefined) return NO_RECORD;
    const [renewTime] = messages(spec, 4);
    return {
      holder: messages(spec, 1)[0]?.toString("utf8"),
      durationMs: milliseconds(numberIn(spec, 2)),
      renewedMs: renewTime && (numberIn(renewTime, 1) ?? 0) * 1_000 + Math.floor((numberIn(renewTime, 2) ?? 0) / 1e6),
    };
  }
  for (const metadata of messages(raw, 1)) {
    for (const entry of messages(metadata, 12)) {
      if (messages(entry, 1)[0]?.toString("utf8") === LEADER_ANNOTATION)
        return recordInAnnotation(messages(entry, 2)[0]?.toString("utf8"));
    }
  }
  return NO_RECORD;
}

function messages(message: Uint8Array, number: number): Buffer[] {
  const found: Buffer[] = [];
  for (const field of fieldsOf(message)) if (field.number === number && field.wireType === BYTES) found.push(field.value());
  return found;
}

function numberIn(message: Uint8Array, number: number): number | undefined {
  for (const field of fieldsOf(message)) {
    if (field.number === number && field.wireType === 0)
      return field.value().reduceRight((value, byte) => value * 128 + (byte & 0x7f), 0);
  }
  return undefined;
}

function milliseconds(seconds: number | null | undefined): number | undefined {
  return seconds === null || seconds === undefined ? undefined : seconds * 1_000;
}
