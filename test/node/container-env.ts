// A container's environment and command line, as a kubelet builds them: the variables of the Service kubernetes, then envFrom,
// then env, with $(NAME) expanded from earlier variables. Pure, given the ConfigMaps and Secrets.
import { fieldValue, type PodAddresses, resourceValue } from "./pod-fields.ts";
import type { Container, EnvVar, Keyed, KeySelector, NodePod } from "./pod-types.ts";
import type { TestImage } from "./test-image.ts";

/** ConfigMaps and Secrets of the pod's namespace; undefined if there is none of that name. */
export interface KeyedObjects {
  configMap(name: string): Keyed | undefined;
  secret(name: string): Keyed | undefined;
}

export interface EnvSources extends KeyedObjects {
  readonly addresses: PodAddresses;
  /** Address and port of the Service kubernetes. */
  readonly apiService: { readonly host: string; readonly port: number };
}

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** @throws Error with the kubelet's message if a required object is missing */
export function containerEnv(
  pod: NodePod,
  container: Container,
  image: TestImage,
  sources: EnvSources,
): Readonly<Record<string, string>> {
  const { host, port } = sources.apiService;
  const address = `tcp://${host}:${port}`;
  const env: Record<string, string> = {
    PATH,
    HOSTNAME: pod.spec.hostname ?? pod.metadata.name ?? "",
    ...image.env,
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: String(port),
    KUBERNETES_SERVICE_PORT_HTTPS: String(port),
    KUBERNETES_PORT: address,
    [`KUBERNETES_PORT_${port}_TCP`]: address,
    [`KUBERNETES_PORT_${port}_TCP_PROTO`]: "tcp",
    [`KUBERNETES_PORT_${port}_TCP_PORT`]: String(port),
    [`KUBERNETES_PORT_${port}_TCP_ADDR`]: host,
  };
  for (const { prefix = "", configMapRef, secretRef } of container.envFrom ?? []) {
    if (configMapRef !== undefined) addAll(env, prefix, dataOf("configmap", configMapRef, sources));
    if (secretRef !== undefined) addAll(env, prefix, dataOf("secret", secretRef, sources));
  }
  for (const variable of container.env ?? []) {
    const value = variableValue(pod, container, variable, env, sources);
    if (value !== undefined) env[variable.name] = value;
  }
  return env;
}

/** The program and its arguments: the container's command replaces the image's entrypoint and arguments. */
export function commandLine({ command, args }: Container, image: TestImage, env: Readonly<Record<string, string>>): string[] {
  const rest = args ?? (command === undefined ? (image.cmd ?? []) : []);
  return [...(command ?? image.entrypoint), ...rest].map((word) => expand(word, env));
}

/** $(NAME) becomes its value, if it has one; $$(NAME) becomes $(NAME). */
export function expand(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(/\$\$|\$\(([^)]+)\)/g, (match, name: string | undefined) =>
    name === undefined ? "$" : (env[name] ?? match),
  );
}

function variableValue(
  pod: NodePod,
  container: Container,
  { value = "", valueFrom }: EnvVar,
  env: Readonly<Record<string, string>>,
  sources: EnvSources,
): string | undefined {
  if (valueFrom?.fieldRef !== undefined) return fieldValue(pod, valueFrom.fieldRef, sources.addresses);
  if (valueFrom?.resourceFieldRef !== undefined) return resourceValue(pod, container, valueFrom.resourceFieldRef);
  if (valueFrom?.configMapKeyRef !== undefined) return keyOf("configmap", valueFrom.configMapKeyRef, sources);
  if (valueFrom?.secretKeyRef !== undefined) return keyOf("secret", valueFrom.secretKeyRef, sources);
  return expand(value, env);
}

type Kind = "configmap" | "secret";

function keyOf(kind: Kind, { name, key, optional = false }: KeySelector, sources: KeyedObjects): string | undefined {
  const value = dataOf(kind, { name, optional }, sources)[key];
  if (value === undefined && !optional) throw new Error(`couldn't find key ${key} in ${kind} ${name}`);
  return value;
}

function dataOf(
  kind: Kind,
  { name, optional = false }: { readonly name: string; readonly optional?: boolean },
  sources: KeyedObjects,
): Readonly<Record<string, string>> {
  const object = kind === "secret" ? sources.secret(name) : sources.configMap(name);
  if (object === undefined && !optional) throw new Error(`${kind} "${name}" not found`);
  const data = Object.entries(object?.data ?? {});
  return Object.fromEntries(kind === "secret" ? data.map(([key, value]) => [key, decode(value)]) : data);
}

function decode(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}

function addAll(env: Record<string, string>, prefix: string, data: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(data)) env[prefix + key] = value;
}
