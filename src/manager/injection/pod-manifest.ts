// The pod of an admission request, and the patch between two pods. Invariant: fields that this file does not
// name are passed on, so a field of a later Kubernetes version is never lost.
import { z } from "zod";
import { formatProblem, validate } from "../../api/problems.ts";
import type { JsonPatchOperation } from "../../kube/client/types.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import { isOurs } from "./names.ts";

const text = z.string();
const strings = z.array(text);

const envSchema = z.looseObject({ name: text, value: text.optional(), valueFrom: z.unknown().optional() });
const mountSchema = z.looseObject({
  name: text,
  mountPath: text,
  readOnly: z.boolean().optional(),
  subPath: text.optional(),
  subPathExpr: text.optional(),
});
const portSchema = z.looseObject({ containerPort: z.number(), name: text.optional(), protocol: text.optional() });
const targetSchema = z.looseObject({ port: z.union([z.number(), text]) }).optional();
const handlerSchema = z.looseObject({ httpGet: targetSchema, tcpSocket: targetSchema });
const lifecycleSchema = z.looseObject({ postStart: handlerSchema.optional(), preStop: handlerSchema.optional() });
const userSchema = z.looseObject({ runAsUser: z.number().optional() });
const containerSchema = z.looseObject({
  name: text,
  image: text.optional(),
  command: strings.optional(),
  args: strings.optional(),
  env: z.array(envSchema).optional(),
  envFrom: z.array(z.looseObject({ prefix: text.optional() })).optional(),
  ports: z.array(portSchema).optional(),
  volumeMounts: z.array(mountSchema).optional(),
  securityContext: userSchema.optional(),
  restartPolicy: text.optional(),
  startupProbe: handlerSchema.optional(),
  livenessProbe: handlerSchema.optional(),
  readinessProbe: handlerSchema.optional(),
  lifecycle: lifecycleSchema.optional(),
});
const itemsSchema = z.array(z.looseObject({ key: text, path: text })).optional();
const objectSourceSchema = z.looseObject({ name: text.optional(), items: itemsSchema });
const sourceSchema = z.looseObject({
  serviceAccountToken: z.looseObject({ path: text }).optional(),
  configMap: objectSourceSchema.optional(),
  secret: objectSourceSchema.optional(),
  clusterTrustBundle: z.looseObject({ path: text }).optional(),
});
const volumeSchema = z.looseObject({
  name: text,
  projected: z.looseObject({ sources: z.array(sourceSchema).nullish(), defaultMode: z.number().optional() }).optional(),
  secret: z.looseObject({ defaultMode: z.number().optional() }).optional(),
});
const aliasSchema = z.looseObject({ ip: text, hostnames: strings.optional() });
const podSecuritySchema = z.looseObject({
  runAsUser: z.number().optional(),
  fsGroup: z.number().optional(),
  sysctls: z.array(z.looseObject({ name: text, value: text })).optional(),
});
const podSchema = z.looseObject({
  metadata: z.looseObject({
    name: text.optional(),
    generateName: text.optional(),
    labels: z.record(text, text).optional(),
    annotations: z.record(text, text).optional(),
  }),
  spec: z.looseObject({
    containers: z.array(containerSchema).min(1),
    initContainers: z.array(containerSchema).optional(),
    volumes: z.array(volumeSchema).optional(),
    hostNetwork: z.boolean().optional(),
    dnsPolicy: text.optional(),
    hostAliases: z.array(aliasSchema).optional(),
    imagePullSecrets: z.array(z.looseObject({ name: text.optional() })).optional(),
    nodeSelector: z.record(text, text).optional(),
    os: z.looseObject({ name: text.optional() }).optional(),
    restartPolicy: text.optional(),
    securityContext: podSecuritySchema.optional(),
  }),
});

export type PodManifest = z.output<typeof podSchema>;
export type PodSpec = PodManifest["spec"];
export type Container = z.output<typeof containerSchema>;
export type Port = z.output<typeof portSchema>;
export type Handler = z.output<typeof handlerSchema>;
export type Lifecycle = z.output<typeof lifecycleSchema>;
export type EnvVar = z.output<typeof envSchema>;
export type VolumeMount = z.output<typeof mountSchema>;
export type Volume = z.output<typeof volumeSchema>;
export type VolumeSource = z.output<typeof sourceSchema>;

export interface Resources {
  readonly requests?: Readonly<Record<string, string>>;
  readonly limits?: Readonly<Record<string, string>>;
}

export function containersOf({ containers, initContainers = [] }: PodSpec): Container[] {
  return [...initContainers, ...containers];
}

/** The containers of the pod without the mesh's. */
export function theirContainers(spec: PodSpec): Container[] {
  return containersOf(spec).filter((each) => !isOurs(each));
}

type ReadPod = { readonly ok: true; readonly pod: PodManifest } | { readonly ok: false; readonly problem: string };

/** The API server has decoded the pod, so only another client can fail here. */
export function readPod(input: unknown): ReadPod {
  const result = validate(podSchema, input);
  if (!result.ok) return { ok: false, problem: result.problems.map(formatProblem).join("; ") };
  return { ok: true, pod: input as PodManifest }; // not zod's copy, which has another order of fields
}

/** One operation for each changed field of metadata and spec: short enough for the audit log. "add" also replaces. */
export function patchBetween(before: PodManifest, after: PodManifest): JsonPatchOperation[] {
  return [...between("/metadata", before.metadata, after.metadata), ...between("/spec", before.spec, after.spec)];
}

type Fields = Readonly<Record<string, unknown>>;

function between(path: string, before: Fields, after: Fields): JsonPatchOperation[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].sort().flatMap((key): JsonPatchOperation[] => {
    const [was, is] = [before[key], after[key]];
    if (isDeepEqual(was, is)) return [];
    const at = `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    return [is === undefined ? { op: "remove", path: at } : { op: "add", path: at, value: is }];
  });
}
