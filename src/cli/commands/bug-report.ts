// `ctrlmesh bug-report`: what somebody else needs to understand a problem, in one document. Invariant: no Secret is read,
// and of other objects only what redact.ts names.
import { z } from "zod";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import {
  CIRCUIT_BREAKERS,
  FAULT_INJECTIONS,
  MANAGER_STATES,
  SHARDING_CONFIGS,
  TRAFFIC_POLICIES,
  VIRTUAL_APPS,
} from "../../api/resources.ts";
import { errorMessage } from "../../base/errors.ts";
import { plainText } from "../../base/plain-text.ts";
import { VERSION } from "../../base/version.ts";
import type { Resource } from "../../kube/client/resource.ts";
import { EVENTS, type Event, PODS } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import { askSidecarsOf } from "../apps/app-sidecars.ts";
import { listApps } from "../apps/apps.ts";
import { ownObject, podFacts, withoutCredentials } from "../apps/redact.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { ALL_NAMESPACES, namespaceOf } from "../frame/flags.ts";
import { readAnswer } from "../frame/read-answer.ts";

const NAMESPACED = [
  VIRTUAL_APPS,
  SHARDING_CONFIGS,
  TRAFFIC_POLICIES,
  CIRCUIT_BREAKERS,
  FAULT_INJECTIONS,
] as readonly Resource<KubeObject>[];
const PAGES = ["/debug/snapshot", "/debug/policies", "/debug/plans"];

const SERVER = z.object({
  major: z.string(),
  minor: z.string(),
  gitVersion: z.string().optional(),
  platform: z.string().optional(),
});

export const BUG_REPORT: Command = {
  name: "bug-report",
  args: "",
  maxArgs: 0,
  summary: "objects, statuses and sidecars' pages in one document without secrets",
  flags: ALL_NAMESPACES,
  async run({ flags, output, clock, cluster }: Call) {
    const connected = await cluster();
    const namespace = flags.isSet("all-namespaces") ? undefined : namespaceOf(flags, connected.namespace);
    const problems: string[] = [];
    /** What cannot be read is named, and the rest is still of use. */
    const tried = async <T>(what: string, read: () => Promise<T>): Promise<T | undefined> => {
      try {
        return await read();
      } catch (error) {
        problems.push(plainText(withoutCredentials(`${what}: ${errorMessage(error)}`)));
        return undefined;
      }
    };
    const objects: Record<string, unknown> = {};
    for (const resource of [...NAMESPACED, MANAGER_STATES as Resource<KubeObject>]) {
      const list = () => connected.list(resource, resource.namespaced ? namespace : undefined);
      objects[resource.kind] = await tried(resource.resource, async () => (await list()).map(ownObject));
    }
    const pods = await tried("pods", async () => (await connected.list(PODS, namespace, INJECTED_LABEL)).map(podFacts));
    const events = await tried("events", async () => (await connected.list(EVENTS, namespace)).filter(isOfMesh).map(eventFacts));
    const apps = (await tried("apps", () => listApps(connected, namespace))) ?? [];
    const pages: Record<string, unknown> = {};
    for (const path of apps.length === 0 ? [] : PAGES)
      pages[path] = await tried(path, () => askSidecarsOf(connected, apps, { path, schema: z.looseObject({}) }, output));
    const report = {
      client: VERSION,
      time: new Date(clock.now()).toISOString(),
      namespace,
      server: await tried("version", async () => readAnswer(SERVER, await connected.read("/version"), "/version")),
      objects,
      pods,
      events,
      sidecars: pages,
      problems,
    };
    output.document("BugReport", report);
    output.hint("no Secret was read. Names of namespaces, objects and images are in it: look at it before you send it");
    const isEmpty = [...Object.values(objects), pods, events].every((part) => part === undefined);
    return isEmpty ? EXIT.failed : EXIT.ok;
  },
};

function isOfMesh({ source, reportingComponent }: Event): boolean {
  return /ctrlmesh/.test(source?.component ?? reportingComponent ?? "");
}

function eventFacts({ metadata: { namespace }, involvedObject, type, reason, message, count, lastTimestamp }: Event): object {
  return { namespace, involvedObject, type, reason, message, count, lastTimestamp };
}
