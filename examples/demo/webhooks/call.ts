// Asks the operator's webhook about a new Foo, as an API server does: localkube itself calls no webhooks. The call goes to the pod that a Service
// has picked.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { MeshError } from "../../../src/base/errors.ts";
import { WEBHOOK_PORT } from "../../../src/manager/injection/names.ts";
import { applyJsonPatch } from "../../../test/localkube/patch/json-patch.ts";
import { FOOS, type Foo } from "../manifests.ts";
import { SERVICE_NAME } from "../pod-webhooks.ts";
import type { DemoPod } from "../pods.ts";

/** How long an API server would wait, in seconds. */
const TIMEOUT_S = 5;

export type Admission =
  | { readonly kind: "defaulted"; readonly foo: Foo }
  /** The call failed: the `failurePolicy` of the webhook decides. */
  | { readonly kind: "failed"; readonly message: string };

interface Answer {
  readonly message?: string;
  readonly response?: { readonly uid: string; readonly allowed: boolean; readonly patch?: string };
}

/**
 * @param picked the pod that gets the call
 * @throws MeshError `UNEXPECTED` if the answer is not that of a webhook
 */
export async function callWebhook(foo: Foo, picked: DemoPod, caPem: string): Promise<Admission> {
  const uid = randomUUID();
  const { group, version, resource, kind } = FOOS;
  const { namespace, name } = foo.metadata;
  const review = {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid,
      kind: { group, version, kind },
      resource: { group, version, resource },
      namespace,
      name,
      operation: "CREATE",
      object: foo,
    },
  };
  const { code, body } = await post(picked, caPem, JSON.stringify(review));
  const answer = JSON.parse(body) as Answer;
  if (code !== 200) return { kind: "failed", message: `${code} ${answer.message}` };
  const { response } = answer;
  if (response?.uid !== uid || !response.allowed || response.patch === undefined) {
    throw new MeshError("UNEXPECTED", `the webhook should have defaulted the Foo, not answered ${body}`);
  }
  const patch = JSON.parse(Buffer.from(response.patch, "base64").toString("utf8"));
  return { kind: "defaulted", foo: applyJsonPatch(foo, patch) as Foo };
}

async function post({ address }: DemoPod, caPem: string, body: string): Promise<{ code: number; body: string }> {
  const call = request({
    host: address,
    port: WEBHOOK_PORT,
    path: `/default?timeout=${TIMEOUT_S}s`,
    method: "POST",
    ca: caPem,
    servername: SERVICE_NAME,
    agent: false,
    headers: { "content-type": "application/json" },
  });
  call.end(body);
  const [response] = (await once(call, "response")) as [IncomingMessage];
  response.setEncoding("utf8");
  let text = "";
  for await (const chunk of response) text += chunk;
  return { code: response.statusCode ?? 0, body: text };
}
