// The kubeconfig in a Secret that a MeshCluster names. The manager may read the Secret only if a user allows it for this one by name.
import { errorMessage } from "../../base/errors.ts";
import type { ObjectRef } from "../../kube/client/resource.ts";
import { SECRETS } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { isStatus, StatusError } from "../../kube/status.ts";
import { MAX_KUBECONFIG_BYTES } from "./read-kubeconfig.ts";

/** Of this project, of Cluster API, and of others. */
const KEYS = ["kubeconfig", "value", "config"];
const READ_LIMIT_MS = 10_000;

export type SecretAnswer =
  | { readonly kind: "text"; readonly text: string }
  /** There is no kubeconfig, or the manager may not read it. */
  | { readonly kind: "none"; readonly problem: string }
  /** The API server at home does not answer: what was read before still counts. */
  | { readonly kind: "failed"; readonly problem: string };

export async function readKubeconfigSecret(
  client: Pick<KubeClient, "get">,
  secret: Required<ObjectRef>,
  signal: AbortSignal,
): Promise<SecretAnswer> {
  const { name } = secret;
  try {
    const { data = {} } = await client.get(SECRETS, secret, { signal, timeoutMs: READ_LIMIT_MS });
    const key = KEYS.find((each) => Object.hasOwn(data, each));
    const base64 = key === undefined ? undefined : data[key];
    if (base64 === undefined) return { kind: "none", problem: `Secret ${name} has none of the keys ${KEYS.join(", ")}` };
    // A text of another encoding is refused by its parser. Cut, so that a long one is not copied.
    const text = Buffer.from(base64.slice(0, 2 * MAX_KUBECONFIG_BYTES), "base64").toString("utf8");
    return { kind: "text", text };
  } catch (error) {
    if (isStatus(error, "NotFound")) return { kind: "none", problem: `Secret ${name} does not exist` };
    if (isStatus(error, "Forbidden")) return { kind: "none", problem: forbiddenText(name, error) };
    const why = error instanceof StatusError ? `HTTP ${error.status.code}` : errorMessage(error);
    return { kind: "failed", problem: `Secret ${name} could not be read: ${why}` };
  }
}

/** The API server at home says who the manager is. */
function forbiddenText(name: string, { status: { message } }: StatusError): string {
  const user = /User "(system:serviceaccount:[a-z0-9.:-]+)"/.exec(message)?.[1] ?? "the manager's ServiceAccount";
  return `the manager may not get Secret ${name}: bind a Role with the verb get on secrets, resourceNames [${name}], to ${user}`;
}
