// Discovery documents and a minimal OpenAPI v3, both generated from the table of kinds. The OpenAPI part has no schemas: it only
// says that a kind exists and accepts fieldValidation, which kubectl checks before an apply.
import { apiVersionOf, type Registry, type ResourceType } from "./model/registry.ts";

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** The document for a discovery path, or undefined if there is none. */
export function discover(registry: Registry, segments: readonly string[], server: string): object | undefined {
  const [prefix, first, second] = segments;
  if (prefix === "api") {
    if (first === undefined)
      return {
        kind: "APIVersions",
        versions: ["v1"],
        serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: server }],
      };
    return segments.length === 2 ? resourceList(registry, "", first) : undefined;
  }
  if (prefix !== "apis") return undefined;
  const groups = groupsOf(registry);
  if (first === undefined) return { kind: "APIGroupList", apiVersion: "v1", groups };
  if (second === undefined) {
    const group = groups.find(({ name }) => name === first);
    return group === undefined ? undefined : { kind: "APIGroup", apiVersion: "v1", ...group };
  }
  return segments.length === 3 ? resourceList(registry, first, second) : undefined;
}

/** The OpenAPI v3 document for a path below /openapi/v3, or undefined. */
export function describeOpenApi(registry: Registry, segments: readonly string[], version: number): object | undefined {
  const rest = segments.slice(2).join("/");
  const paths = [...new Set(registry.all().map(groupVersionPath))];
  if (rest === "") {
    return {
      paths: Object.fromEntries(paths.map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${version}` }])),
    };
  }
  if (!paths.includes(rest)) return undefined;
  const types = registry.all().filter((type) => groupVersionPath(type) === rest);
  return {
    openapi: "3.0.0",
    info: { title: "localkube", version: "v1.36.3" },
    paths: Object.fromEntries(types.filter((type) => !type.virtual).map(operationsOf)),
    components: { schemas: Object.fromEntries(types.map(schemaOf)) },
  };
}

function groupVersionPath(type: ResourceType): string {
  return type.group === "" ? `api/${type.version}` : `apis/${apiVersionOf(type)}`;
}

function operationsOf(type: ResourceType): [string, object] {
  const place = type.namespaced ? "/namespaces/{namespace}" : "";
  const parameter = (name: string) => ({ name, in: "query", schema: { type: "string", uniqueItems: true } });
  const operation = {
    parameters: ["dryRun", "fieldManager", "fieldValidation"].map(parameter),
    responses: { "200": { description: "OK" } },
    "x-kubernetes-group-version-kind": gvk(type),
  };
  return [`/${groupVersionPath(type)}${place}/${type.resource}/{name}`, { put: operation, patch: operation }];
}

function schemaOf(type: ResourceType): [string, object] {
  const name = [...type.group.split("."), type.version, type.kind].filter((part) => part !== "").join(".");
  const schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-group-version-kind": [gvk(type)] };
  return [`localkube.${name}`, schema];
}

function gvk({ group, version, kind }: ResourceType): object {
  return { group, version, kind };
}

function groupsOf(registry: Registry) {
  const names = [...new Set(registry.all().map(({ group }) => group))].filter((name) => name !== "");
  return names.map((name) => {
    const versions = [
      ...new Set(
        registry
          .all()
          .filter(({ group }) => group === name)
          .map(({ version }) => version),
      ),
    ].sort(byPriority);
    const entries = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }));
    return { name, versions: entries, preferredVersion: entries[0] };
  });
}

// v2, v1, v1beta1, v1alpha1, then anything else.
function byPriority(a: string, b: string): number {
  const rank = (version: string): [number, number, number] => {
    const match = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version);
    if (match === null) return [3, 0, 0];
    return [match[2] === undefined ? 0 : match[2] === "beta" ? 1 : 2, -Number(match[1]), -Number(match[3] ?? 0)];
  };
  const [left, right] = [rank(a), rank(b)];
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2] || (a < b ? -1 : 1);
}

function resourceList(registry: Registry, group: string, version: string): object | undefined {
  const types = registry.all().filter((type) => type.group === group && type.version === version);
  if (types.length === 0) return undefined;
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: group === "" ? version : `${group}/${version}`,
    resources: types.flatMap(entriesOf),
  };
}

function entriesOf(type: ResourceType): object[] {
  const base = { name: type.resource, singularName: type.singular, namespaced: type.namespaced, kind: type.kind };
  if (type.virtual) return [{ ...base, verbs: ["create"] }];
  const names = {
    ...(type.shortNames.length === 0 ? {} : { shortNames: type.shortNames }),
    ...(type.categories.length === 0 ? {} : { categories: type.categories }),
  };
  const sub = (name: string, extra: object) => ({ ...base, name: `${type.resource}/${name}`, singularName: "", ...extra });
  return [
    { ...base, verbs: VERBS.filter((verb) => verb !== "deletecollection" || type.deleteCollection), ...names },
    ...(type.status ? [sub("status", { verbs: ["get", "patch", "update"] })] : []),
    ...Object.entries(type.subresources).map(([name, { kind, group, version }]) =>
      sub(name, {
        kind,
        ...(group === type.group ? {} : { group, version }),
        verbs: [name === "finalize" ? "update" : "create"],
      }),
    ),
  ];
}
