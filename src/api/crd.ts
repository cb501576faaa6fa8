// The CustomResourceDefinitions of all kinds, generated from their schemas. Pure. scripts/generate.ts writes
// them to deploy/crds; localkube and the tests install them.
import { circuitBreakerKind } from "./circuit-breaker.ts";
import { faultInjectionKind } from "./fault-injection.ts";
import type { KindDefinition } from "./kind.ts";
import { managerStateKind } from "./manager-state.ts";
import { shardingConfigKind } from "./sharding-config.ts";
import { type StructuralSchema, toStructuralSchema } from "./structural-schema.ts";
import { trafficPolicyKind } from "./traffic-policy.ts";
import { virtualAppKind } from "./virtual-app.ts";

/** Every kind that this version serves, by name. */
export const KINDS = {
  VirtualApp: virtualAppKind,
  ShardingConfig: shardingConfigKind,
  TrafficPolicy: trafficPolicyKind,
  CircuitBreaker: circuitBreakerKind,
  FaultInjection: faultInjectionKind,
  ManagerState: managerStateKind,
} as const satisfies Record<string, KindDefinition>;

export type KindName = keyof typeof KINDS;

/** The names of all kinds, in the order of KINDS. */
export const KIND_NAMES = Object.keys(KINDS) as readonly KindName[];

/** The part of an apiextensions.k8s.io/v1 CustomResourceDefinition that this project uses. */
export interface CustomResourceDefinition {
  readonly apiVersion: "apiextensions.k8s.io/v1";
  readonly kind: "CustomResourceDefinition";
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: Readonly<Record<string, string | readonly string[]>>;
    readonly scope: "Namespaced" | "Cluster";
    readonly versions: readonly {
      readonly name: string;
      readonly served: true;
      readonly storage: true;
      readonly subresources: { readonly status: Readonly<Record<string, never>> };
      readonly additionalPrinterColumns: readonly unknown[];
      readonly schema: { readonly openAPIV3Schema: StructuralSchema };
    }[];
  };
}

/** The whole CustomResourceDefinition of a kind. */
export function crdOf(name: KindName): CustomResourceDefinition {
  const definition: KindDefinition = KINDS[name];
  const { group, kind, plural, shortNames, scope, columns } = definition;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(shortNames.length === 0 ? {} : { shortNames }),
        categories: ["ctrlmesh"],
      },
      scope,
      versions: [
        {
          name: "v1alpha1",
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          schema: { openAPIV3Schema: rootSchema(definition) },
        },
      ],
    },
  };
}

/** The API server defines apiVersion, kind and metadata. In metadata a CRD may restrict only the name. */
function rootSchema({ schema }: KindDefinition): StructuralSchema {
  const {
    properties: { apiVersion: _, kind: __, metadata, ...fields } = {},
    required = [],
    ...root
  } = toStructuralSchema(schema);
  const bounded = metadata?.properties?.name?.maxLength !== undefined ? { properties: { name: metadata.properties.name } } : {};
  const ours = required.filter((field) => field in fields);
  return {
    ...root,
    ...(ours.length === 0 ? {} : { required: ours }),
    properties: {
      apiVersion: { type: "string", description: "Group and version of the object's schema." },
      kind: { type: "string", description: "Kind of the object." },
      metadata: { type: "object", ...bounded },
      ...fields,
    },
  };
}
