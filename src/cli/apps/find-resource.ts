// Finds a resource by what people call it: deployments.apps, pods, deploy.apps. The API server says what there is.
import { z } from "zod";
import { isMeshError } from "../../base/errors.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure } from "../frame/command.ts";
import { readAnswer } from "../frame/read-answer.ts";

export interface FoundResource {
  readonly group: string;
  readonly version: string;
  /** Plural. */
  readonly resource: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
}

const VERSION = z.object({ version: z.string() });
const GROUP = z.object({ preferredVersion: VERSION, versions: z.array(VERSION).optional() });
const RESOURCES = z.object({
  resources: z.array(
    z.object({
      name: z.string(),
      kind: z.string().default(""),
      singularName: z.string().optional(),
      shortNames: z.array(z.string()).optional(),
      namespaced: z.boolean(),
    }),
  ),
});

/** @throws MeshError `COMMAND_FAILED` if there is no such resource */
export async function findResource(cluster: Cluster, text: string): Promise<FoundResource> {
  const [name = "", ...rest] = text.toLowerCase().split(".");
  const group = rest.join(".");
  // The preferred version comes first, and may lack resources that an older one has.
  for (const version of group === "" ? ["v1"] : await versionsOf(cluster, group)) {
    const path = group === "" ? "/api/v1" : `${groupPath(group)}/${encodeURIComponent(version)}`;
    const { resources } = readAnswer(RESOURCES, await cluster.read(path), path);
    const found = resources.find(({ name: plural, singularName, shortNames = [] }) =>
      [plural, singularName, ...shortNames].includes(name),
    );
    if (found !== undefined) return { group, version, resource: found.name, kind: found.kind, isNamespaced: found.namespaced };
  }
  const where =
    group === "" ? "of the core group; others are named with their group, for example deployments.apps" : `of group ${group}`;
  throw failure(`there is no resource ${name} ${where}`);
}

async function versionsOf(cluster: Cluster, group: string): Promise<readonly string[]> {
  try {
    const { preferredVersion, versions = [] } = readAnswer(GROUP, await cluster.read(groupPath(group)), groupPath(group));
    return [...new Set([preferredVersion, ...versions].map(({ version }) => version))];
  } catch (error) {
    if (isMeshError(error, "NOT_FOUND")) throw failure(`the API server has no group ${group}`);
    throw error;
  }
}

function groupPath(group: string): string {
  return `/apis/${encodeURIComponent(group)}`;
}
