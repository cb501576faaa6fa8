// The example operator as processes on any API server, and the commands of its README.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { GREETINGS, type Greeting } from "../../examples/greeting-operator/greeting.ts";
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, type CustomResourceDefinition } from "../../src/kube/client/resources.ts";
import type { KubeClient } from "../../src/kube/client/types.ts";
import { isStatus } from "../../src/kube/status.ts";
import { type Child, startChild } from "./child-process.ts";
import { eventually } from "./eventually.ts";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const EXAMPLE = "examples/greeting-operator";

/** A successful write. */
export interface Write {
  /** The replica that wrote; "" for any other client. */
  readonly pod: string;
  /** "patch greetings/status" */
  readonly request: string;
}

/** An API server to run the operator on. */
export interface ExampleServer {
  readonly kubeconfig: string;
  readonly client: KubeClient;
  /** The writes in the audit log, oldest first, without the lease. */
  writes(): readonly Write[];
  /** Starts the API server and its controllers again, with the same data. */
  restart?(): Promise<void>;
  stop(): Promise<void>;
}

const WRITES = /^(create|update|patch|delete)$/;

/** A line of either audit log as a Write; undefined for other lines and for the lease. */
export function writeOf(line: {
  readonly verb: string;
  readonly code: number;
  readonly userAgent: string;
  readonly resource: string;
  readonly subresource: string;
}): Write | undefined {
  const { verb, code, userAgent, resource, subresource } = line;
  if (!WRITES.test(verb) || code >= 300 || resource === "leases") return undefined;
  const pod = /^greeting-operator\/\S+ (\S+)$/.exec(userAgent)?.[1] ?? "";
  return { pod, request: `${verb} ${resource}${subresource === "" ? "" : `/${subresource}`}` };
}

export function startReplica({ kubeconfig }: ExampleServer, podName: string): Promise<Child> {
  return startChild({
    name: podName,
    command: process.execPath,
    args: [`${ROOT}${EXAMPLE}/main.ts`, "--print-ready", "--health-listen", "127.0.0.1:0", "--lease-duration-ms", "4000"],
    env: { KUBECONFIG: kubeconfig, GREETING_POD_NAME: podName, GREETING_NAMESPACE: "default" },
  });
}

/** Installs the kind if it is missing and waits until it is served. */
export async function installGreetings(client: KubeClient): Promise<void> {
  const crd = parse(readFileSync(`${ROOT}${EXAMPLE}/crd.yaml`, "utf8")) as CustomResourceDefinition;
  await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd).catch((error: unknown) => {
    if (!isStatus(error, "AlreadyExists")) throw error;
  });
  await eventually(() => client.list(GREETINGS));
}

export function greetings(client: KubeClient, namespace: string) {
  const ref = (name: string) => ({ namespace, name });
  const orAbsent = async <T>(call: Promise<T>): Promise<T | undefined> => {
    try {
      return await call;
    } catch (error) {
      if (isStatus(error, "NotFound")) return undefined;
      throw error;
    }
  };
  return {
    create: (name: string, to: string, language = "en") =>
      client.create(GREETINGS, { metadata: ref(name), spec: { to, language } } as Greeting),
    edit: (name: string, spec: Partial<Greeting["spec"]>) =>
      client.patch(GREETINGS, ref(name), { type: "merge", body: { spec } }),
    remove: (name: string) => client.delete(GREETINGS, ref(name)),
    read: (name: string) => orAbsent(client.get(GREETINGS, ref(name))),
    child: (name: string) => orAbsent(client.get(CONFIG_MAPS, ref(`${name}-greeting`))),
    childRef: (name: string) => ref(`${name}-greeting`),
    async line(name: string) {
      const directory = await orAbsent(client.get(CONFIG_MAPS, { namespace: "default", name: "greetings" }));
      return directory?.data?.[`${namespace}.${name}`];
    },
  };
}

/** A block of commands of the README, and its expected output. */
export interface ReadmeBlock {
  readonly commands: string;
  /** True for the command that keeps running, which is the operator. */
  readonly isOperator: boolean;
  readonly output: string | undefined;
}

/** The blocks of ```sh, each with the next block of ```text. @param port the operator's port instead of the README's */
export function readmeBlocks(port: number): readonly ReadmeBlock[] {
  const text = readFileSync(`${ROOT}${EXAMPLE}/README.md`, "utf8").replaceAll("127.0.0.1:8085", `127.0.0.1:${port}`);
  return [...text.matchAll(/```sh( operator)?\n(.*?)```\n(?:\n```text\n(.*?)```)?/gs)].map(
    ([, operator, commands = "", output]) => ({
      commands,
      isOperator: operator !== undefined,
      output,
    }),
  );
}
