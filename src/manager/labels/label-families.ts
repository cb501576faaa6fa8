// Which families may use `labelObjects`. Anybody who may write a ShardingConfig in some namespace can set
// that field, and it labels objects of all namespaces.
import { z } from "zod";
import { tryParseJson } from "../../base/json.ts";
import { resourceName } from "../../kube/client/resource.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { AppRef } from "../apps/app.ts";
import { isNamespaces } from "./right-labels.ts";

/** By resource: the families as namespace/name, or "*" for every family. */
export type LabelFamilies = ReadonlyMap<string, readonly string[]>;

export type Family = Pick<AppRef, "namespace" | "name">;

const EVERY = "*";

/** JSON such as {"configmaps":["foo-system/foo-operator"]}; "" for none. */
export const labelFamilies = z.string().transform((text, context): LabelFamilies => {
  const given = text === "" ? {} : tryParseJson(Buffer.from(text));
  const read = z.record(z.string(), z.array(z.string().regex(/^(\*|[a-z0-9.-]+\/[a-z0-9.-]+)$/))).safeParse(given);
  const message = 'is not JSON such as {"configmaps":["foo-system/foo-operator"]}, or {"configmaps":["*"]}';
  if (!read.success) context.addIssue({ code: "custom", message });
  return new Map(Object.entries(read.data ?? {}));
});

/** Namespaces are labelled for every family that may have something labelled. */
export function mayLabel(families: LabelFamilies, { namespace, name }: Family, of: GroupResource): boolean {
  const allowed = isNamespaces(of) ? [...families.values()].flat() : (families.get(resourceName(of)) ?? []);
  return allowed.includes(EVERY) || allowed.includes(`${namespace}/${name}`);
}

export function whyNotLabelled({ namespace, name }: Family, of: GroupResource): string {
  const entry = isNamespaces(of) ? "an entry" : `the entry { group: ${JSON.stringify(of.group)}, resource: ${of.resource} }`;
  return `add ${namespace}/${name} to the families of ${entry} in the chart's value rbac.labelObjects: labels are for the families that it names`;
}
