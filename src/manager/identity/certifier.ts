// Signs a proxy's P-256 key for the pod that its token names. Invariant: only pods that carry the proxy in a
// namespace of the mesh get a certificate. The app may be gone, since its proxies still serve the operator.
import { createPublicKey, type KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { carriesProxy, isRedirected } from "../../api/injected-pod.ts";
import type { Clock } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import { createFairGate } from "../../base/fair-gate.ts";
import { podUri } from "../../base/pem.ts";
import { PODS, type Pod } from "../../kube/client/resources.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { CertificateReplyMessage } from "../../mesh/contract/messages.ts";
import { podKey } from "../../mesh/handover/proxy-facts.ts";
import { getIfThere } from "../../runtime/patch-current.ts";
import type { PodLists } from "../facts/pod-watch.ts";
import { signLeaf } from "./authority.ts";
import type { ServerNames, SigningIdentity } from "./mesh-identity.ts";
import { type PodIdentity, refuse, type TokenVerdict } from "./token-reviewer.ts";

type Certification =
  | { readonly kind: "signed"; readonly reply: CertificateReplyMessage }
  | Exclude<TokenVerdict, { kind: "pod" }>;

interface CertifierOptions {
  readonly identity: Pick<SigningIdentity, "authority">;
  readonly pods: readonly PodLists[];
  readonly client: Pick<KubeClient, "get">;
  /** See `createMeshNamespaces`; undefined until it is known. */
  readonly isOfMesh: (namespace: string) => boolean | undefined;
  /** Those of the Service `default/kubernetes`; undefined until they are known. */
  readonly clusterIPs: () => readonly string[] | undefined;
  readonly clusterDomain: string;
  readonly lifetimeMs: number;
  readonly clock: Clock;
}

/** Never throws. */
export type Certifier = (caller: PodIdentity, publicKey: Uint8Array) => Promise<Certification>;

// SubjectPublicKeyInfo of a P-256 key with an uncompressed point has one form and one length.
const P256_BYTES = 91;
const CONCURRENCY = 16;
const MAX_WAITING = 4_096;
const TIMEOUT_MS = 5_000;

export function createCertifier(options: CertifierOptions): Certifier {
  const { identity, pods, client, isOfMesh, clusterIPs, clusterDomain, lifetimeMs, clock } = options;
  const gate = createFairGate(CONCURRENCY, MAX_WAITING);

  // A pod is in no store if it is new, or if its namespace no longer has an app.
  async function find({ namespace, name, uid }: PodIdentity): Promise<Pod | undefined> {
    for (const lists of pods) {
      const pod = lists.get(name, namespace);
      if (pod?.metadata.uid === uid && carriesProxy(pod)) return pod;
    }
    return gate(namespace, () => getIfThere(client, PODS, { namespace, name }, { timeoutMs: TIMEOUT_MS, maxRetries: 0 }));
  }

  return async (caller, bytes) => {
    const key = readKey(bytes);
    if (key === undefined) return refuse("bad-request", "public_key is not the SubjectPublicKeyInfo of an ECDSA P-256 key");
    const isMeshNamespace = isOfMesh(caller.namespace);
    if (isMeshNamespace === undefined) return { kind: "wait", message: "the apps have not been listed yet" };
    if (!isMeshNamespace) return refuse("no-app", `there is no app in namespace ${caller.namespace}`);
    let addresses: readonly string[] | undefined = [];
    try {
      const pod = await find(caller);
      if (pod?.metadata.uid !== caller.uid)
        return refuse("other-pod", `there is no pod ${podKey(caller)} with uid ${caller.uid}`);
      if (!carriesProxy(pod)) return refuse("no-proxy", `pod ${podKey(caller)} carries no proxy`);
      if (isRedirected(pod)) addresses = clusterIPs();
    } catch (error) {
      return { kind: "wait", message: `the pod cannot be read now: ${errorMessage(error)}` };
    }
    if (addresses === undefined) return { kind: "wait", message: "the Service default/kubernetes has not been read yet" };
    const { authority } = identity;
    if (authority === undefined) return { kind: "wait", message: "there is no mesh CA yet" };
    const names = proxyNames(clusterDomain, addresses);
    const chainPem = signLeaf(authority, key, { ...names, clientName: podUri(caller), now: clock.now(), lifetimeMs });
    return { kind: "signed", reply: { chainPem, trustPem: authority.trustPem } };
  };
}

/**
 * All names by which an operator may know the API server; no proxy's certificate is valid for the manager.
 * @param clusterIPs of the Service `default/kubernetes`, if connections to them are redirected to the proxy
 */
function proxyNames(clusterDomain: string, clusterIPs: readonly string[]): ServerNames {
  const api = "kubernetes.default.svc";
  // Operators may have the usual domain built in, in any cluster.
  const domains = [...new Set(["cluster.local", clusterDomain])];
  return {
    commonName: "ctrlmesh-proxy",
    dnsNames: ["localhost", "kubernetes", "kubernetes.default", api, ...domains.map((domain) => `${api}.${domain}`)],
    ipAddresses: [...new Set(["127.0.0.1", "::1", ...clusterIPs.filter((address) => isIP(address) !== 0)])],
  };
}

function readKey(bytes: Uint8Array): KeyObject | undefined {
  if (bytes.length !== P256_BYTES) return undefined;
  try {
    const der = Buffer.from(bytes);
    const key = createPublicKey({ key: der, format: "der", type: "spki" });
    const isP256 = key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1";
    return isP256 && key.export({ format: "der", type: "spki" }).equals(der) ? key : undefined;
  } catch {
    return undefined;
  }
}
