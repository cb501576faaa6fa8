// Calls one pod's listener for reviews as an API server does, but without the Service's choice of a pod.
import { randomUUID } from "node:crypto";
import { request } from "node:https";
import { text } from "node:stream/consumers";
import { connect } from "node:tls";
import { DEFAULTED_BY, GADGET_HOST, GADGETS } from "./gadgets.ts";

export interface AskOptions {
  readonly servername?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** @param address host:port @returns the pod that has defaulted a new Gadget of the namespace @throws Error for another answer */
export async function askPod(
  address: string,
  namespace: string,
  { servername = GADGET_HOST, headers }: AskOptions = {},
): Promise<string> {
  const { group, version, resource, kind } = GADGETS;
  const object = { apiVersion: `${group}/${version}`, kind, metadata: { namespace, name: "asked" } };
  const subject = {
    uid: randomUUID(),
    resource: { group, version, resource },
    namespace,
    name: "asked",
    operation: "CREATE",
    object,
  };
  const review = {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: { ...subject, kind: { group, version, kind }, userInfo: {}, dryRun: true },
  };
  const [host = "", port = ""] = address.split(":");
  const path = "/mutate-demo-ctrlmesh-io-v1-gadget?timeout=3s";
  const answer = await new Promise<string>((resolve, reject) => {
    const options = { ...{ host, port, path, servername, rejectUnauthorized: false, method: "POST", agent: false } };
    const call = request({ ...options, headers: { "content-type": "application/json", ...headers } }, (res) => {
      text(res).then(
        (body) => (res.statusCode === 200 ? resolve(body) : reject(new Error(`${res.statusCode}: ${body}`))),
        reject,
      );
    });
    call.once("error", reject);
    call.end(JSON.stringify(review));
  });
  const { response } = JSON.parse(answer) as { response: { patch: string } };
  const operations = JSON.parse(Buffer.from(response.patch, "base64").toString()) as { value: unknown }[];
  const pod = operations.flatMap(({ value }) => (value as Readonly<Record<string, string>>)[DEFAULTED_BY] ?? [])[0];
  if (pod === undefined) throw new Error(`no pod is named in ${JSON.stringify(operations)}`);
  return pod;
}

/** The common name of the CA that has signed the certificate of a server. */
export function servedIssuer(address: string): Promise<string> {
  const [host = "", port] = address.split(":");
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), servername: GADGET_HOST, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().issuer.CN));
      socket.destroy();
    });
    socket.once("error", reject);
  });
}
