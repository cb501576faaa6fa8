// Shared by all parts of the contract: a client, new namespaces, and the custom resource `widgets`.
import { type Body, type Client, eventually } from "./client.ts";

export interface Context {
  readonly client: Client;
  /** The token of the admin. */
  readonly token: string;
  /** A new namespace. */
  namespace(): Promise<string>;
  /** The last test of the contract waits until this path answers 404, since a real namespace takes seconds to go. */
  goneInTheEnd(path: string): void;
}

export const GROUP = "contract.ctrlmesh.test";
export const WIDGETS = `/apis/${GROUP}/v1`;
export const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export function configMap(name: string, extra: Body = {}): Body {
  const { data = { key: "value" }, ...metadata } = extra;
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, ...metadata }, data };
}

export function secret(name: string, metadata: Body = {}): Body {
  return { apiVersion: "v1", kind: "Secret", metadata: { name, ...metadata }, stringData: { key: "value" } };
}

export function widget(name: string, spec: Body = { size: 1 }, metadata: Body = {}): Body {
  return { apiVersion: `${GROUP}/v1`, kind: "Widget", metadata: { name, ...metadata }, spec };
}

export function pod(name: string, metadata: Body = {}): Body {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...metadata },
    spec: { containers: [{ name: "main", image: "example.invalid/none" }] },
  };
}

const CONDITION = {
  type: "object",
  required: ["type"],
  properties: { type: { type: "string" }, status: { type: "string" } },
};

const SCHEMA = {
  type: "object",
  required: ["spec"],
  properties: {
    spec: {
      type: "object",
      required: ["size"],
      properties: {
        size: { type: "integer", minimum: 1, maximum: 100 },
        color: { type: "string", enum: ["red", "blue"], default: "red" },
        code: { type: "string", pattern: "^[a-z]+$", maxLength: 5 },
        tags: { type: "array", maxItems: 2, items: { type: "string" } },
        labels: { type: "object", additionalProperties: { type: "string" } },
        anything: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      },
    },
    status: {
      type: "object",
      properties: {
        ready: { type: "boolean" },
        conditions: { type: "array", items: CONDITION, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] },
      },
    },
  },
};

export function definition(plural = "widgets", kind = "Widget"): Body {
  const columns = [
    { name: "Size", type: "integer", jsonPath: ".spec.size" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ];
  const version = { served: true, subresources: { status: {} }, schema: { openAPIV3Schema: SCHEMA } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: "Namespaced",
      names: { plural, kind },
      versions: [
        { name: "v1", storage: true, ...version, additionalPrinterColumns: columns },
        { name: "v1beta1", storage: false, ...version },
      ],
    },
  };
}

/** Installs a definition and waits until its resource answers. */
export async function install(client: Client, body: Body): Promise<void> {
  await client.post(DEFINITIONS, body);
  await eventually(async () => {
    const { body: stored } = await client.get(`${DEFINITIONS}/${body.metadata.name}`);
    const established = stored.status?.conditions?.some((item: Body) => item.type === "Established" && item.status === "True");
    if (!established) throw new Error("not established");
    const { code } = await client.get(`/apis/${GROUP}/v1beta1/${body.spec.names.plural}`);
    if (code !== 200) throw new Error(`answers ${code}`);
    const { code: newest } = await client.get(`/apis/${GROUP}/v1/${body.spec.names.plural}`);
    if (newest !== 200) throw new Error(`answers ${newest}`);
  });
}
