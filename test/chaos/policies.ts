// Traffic policies in a chaos run. They limit, delay, abort and forbid what the operators of both apps ask,
// and come, change and go while namespaces move. No policy may bring a second owner, or outlive its object.
// They are mild, since an operator waits longer with each failure of an object, up to many minutes.
import { setTimeout as sleep } from "node:timers/promises";
import { CIRCUIT_BREAKERS, FAULT_INJECTIONS, TRAFFIC_POLICIES } from "../../src/api/resources.ts";
import { RECOVER_ANNOTATION } from "../../src/base/recover-annotation.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import { isStatus } from "../../src/kube/status.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import type { Mesh } from "../support/mesh.ts";
import { APP } from "./desired-owners.ts";
import { FAMILY } from "./family.ts";

export interface ChaosPolicies {
  /**
   * Creates, edits or deletes a policy at random. An edit also asks its breakers to close.
   * @returns a description
   */
  change(random: () => number): Promise<string>;
  /** Deletes every policy. */
  clear(): Promise<void>;
}

const REQUEST_MS = 3_000;
const BOTH = { matchExpressions: [{ key: "component", operator: "In", values: [APP.name, FAMILY.name] }] };
const WRITES = { apiGroups: ["*"], resources: ["*"], verbs: ["create", "update", "patch", "delete"] };
const ALL = { apiGroups: ["*"], resources: ["*"], verbs: ["*"], namespaces: ["*"] };

interface Template {
  readonly resource: Resource<KubeObject>;
  readonly name: string;
  /** Deleted after so long. Absent: it stays until another change deletes it. */
  readonly forMs?: number;
  /** @param size from 1 to 5, differs with every edit */
  spec(size: number): object;
}

const breaker = (fields: object) => ({ selector: BOTH, rateLimitings: [{ name: "guard", ...fields }] });

const TEMPLATES: readonly Template[] = [
  {
    resource: CIRCUIT_BREAKERS as unknown as Resource<KubeObject>,
    name: "trips",
    spec: (size) =>
      breaker({
        resourceRules: [{ ...WRITES, namespaces: ["*"] }],
        bucket: { burst: 10 * size, interval: "1s", limit: 10 * size },
        triggerPolicy: "Normal",
        recoverPolicy: { type: "SleepingWindow", sleepingWindowSize: `${1 + (size % 2)}s` },
      }),
  },
  {
    resource: CIRCUIT_BREAKERS as unknown as Resource<KubeObject>,
    name: "forbids",
    // Even this must not take the locks away.
    forMs: 1_000,
    spec: (size) => breaker({ resourceRules: size > 2 ? [ALL] : [{ ...ALL, verbs: ["watch"] }], triggerPolicy: "ForceOpened" }),
  },
  {
    resource: TRAFFIC_POLICIES as unknown as Resource<KubeObject>,
    name: "limits",
    spec: (size) => ({
      targetVirtualApps: [{ name: APP.name }, { name: FAMILY.name }],
      rateLimiting: {
        ratePolicies: [
          { rules: { resourceRules: [{ ...WRITES, clusterScope: true }] }, bucket: { qps: 8 * size, burst: 8 * size } },
        ],
      },
    }),
  },
  {
    resource: FAULT_INJECTIONS as unknown as Resource<KubeObject>,
    name: "disturbs",
    spec: (size) => ({
      selector: BOTH,
      httpFault: [
        {
          name: "slow",
          match: { resources: [{ ...WRITES, namespaces: ["*"] }] },
          delay: { fixedDelay: `${size * 300}ms`, percent: "30" },
          abort: { httpStatus: 500, percent: "10" },
        },
      ],
    }),
  },
];

export function createChaosPolicies(
  { client }: Mesh,
  repeatUntilAccepted: (send: () => Promise<unknown>) => Promise<void>,
): ChaosPolicies {
  const present = new Set<Template>();
  const ref = ({ name }: Template) => ({ namespace: APP.namespace, name });
  const remove = async (template: Template) => {
    await repeatUntilAccepted(() =>
      client.delete(template.resource, ref(template), { timeoutMs: REQUEST_MS }).catch((error: unknown) => {
        if (!isStatus(error, "NotFound")) throw error;
      }),
    );
    present.delete(template);
  };
  return {
    async change(random) {
      const template = TEMPLATES[Math.floor(random() * TEMPLATES.length)] as Template;
      const { resource, name } = template;
      const size = 1 + Math.floor(random() * 5);
      const spec = template.spec(size);
      if (!present.has(template)) {
        present.add(template);
        await repeatUntilAccepted(() =>
          client.create(resource, { metadata: ref(template), spec } as KubeObject, { timeoutMs: REQUEST_MS }),
        );
        if (template.forMs === undefined) return `created ${resource.kind} ${name}`;
        await sleep(template.forMs);
        await remove(template);
        return `created ${resource.kind} ${name} for ${template.forMs} ms`;
      }
      if (random() < 0.5) {
        await remove(template);
        return `deleted ${resource.kind} ${name}`;
      }
      await repeatUntilAccepted(() =>
        client.patch(
          resource,
          ref(template),
          { type: "merge", body: { metadata: { annotations: { [RECOVER_ANNOTATION]: String(size) } }, spec } },
          { timeoutMs: REQUEST_MS },
        ),
      );
      return `edited ${resource.kind} ${name}`;
    },
    async clear() {
      for (const template of present) await remove(template);
    },
  };
}
