// A proxy of its own for the warm-up: the ordinary server, layers and connections, with a stand-in for the
// API server and with made-up routes. Invariant: it shares nothing that is counted, stored or reported.

import { silentLogger } from "../../base/log.ts";
import { Registry } from "../../base/metrics.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { JSON_TYPE } from "../../kube/media-types.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../../route/snapshot.ts";
import { createApiServer } from "../api-server/api-server.ts";
import { createRecord } from "../call/call.ts";
import { readBody } from "../http/byte-stream.ts";
import { CallAbort } from "../http/call-signal.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import { createAccessLog } from "../observe/access-log.ts";
import { createOutbound } from "../outbound/create-outbound.ts";
import { createPolicies } from "../policies/policies.ts";
import { createPolicyMetrics } from "../policies/policy-metrics.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { NO_MEMORY } from "../session/memory.ts";
import { NO_REPORTS } from "../session/session.ts";
import { startStandIn } from "./stand-in.ts";

export interface Rehearsal {
  /** Sends a GET through the proxy. @returns the bytes of the answer. @throws Error if it does not succeed */
  get(path: string): Promise<number>;
  stop(): Promise<void>;
}

const OWN = ["own-0", "own-1"];
/** So many that the API server could not leave them out, and the proxy filters lists. */
const OTHERS = Array.from({ length: 20 }, (_, index) => `other-${index}`);
const ROUTES: Snapshot = {
  version: 1,
  digest: "",
  app: { namespace: "own-0", name: "rehearsal" },
  subset: "rehearsal",
  podNamespace: "own-0",
  lockName: "rehearsal",
  callers: NO_CALLER_POLICY,
  table: {
    rules: [{ kind: "subset", subset: "rehearsal", resources: [{ apiGroups: ["*"], resources: ["*"] }], origin: "" }],
    classes: [[], [0]],
    classOf: new Map([...OTHERS.map((name) => [name, 0] as const), ...OWN.map((name) => [name, 1] as const)]),
    sharedResources: [],
    fenced: new Set(),
  },
};
const HEADERS = { authorization: "Bearer none", accept: JSON_TYPE, "user-agent": "ctrlmesh-proxy" };
const MAX_ANSWER_BYTES = 1024 * 1024;

/** @param caFile the CA of the certificate */
export async function startRehearsal(
  certificate: ServingCertificate,
  caFile: string,
  { clock, random }: Pick<ProcessContext, "clock" | "random">,
): Promise<Rehearsal> {
  const [log, registry] = [silentLogger(), new Registry()];
  const context = { clock, random, log, registry };
  const standIn = await startStandIn(certificate.current(), [...OWN, ...OTHERS]);
  const session = Object.assign(createEnforcer(), { memory: NO_MEMORY, reports: NO_REPORTS });
  session.enforce(ROUTES);
  const policies = createPolicies({ ...context, managerAwayMs: () => 0, metrics: createPolicyMetrics(registry) });
  const accessLog = createAccessLog({ share: 0, random, log });
  const listen = { host: "127.0.0.1", port: 0 };
  const settings = { listen, alsoListen: [], drainMs: 0, apiServer: standIn.url, apiServerCa: caFile };
  const { server, apiServer, metrics } = createOutbound(settings, { ...context, session, policies, certificate, accessLog });
  await Promise.all([apiServer, server].map((part) => part.start(new AbortController().signal)));
  const url = `https://${listen.host}:${server.port}`;
  const client = createApiServer({ apiServer: url, caFile, clock, log, registry: new Registry() });
  return {
    async get(target) {
      const info = parseRequestInfo("GET", target);
      const call = {
        method: "GET",
        target,
        info,
        headers: HEADERS,
        body: null,
        signal: new CallAbort(),
        record: createRecord(info),
      };
      const { status, body } = await client.send(call);
      const { length } = await readBody(body, MAX_ANSWER_BYTES);
      if (status !== 200) throw new Error(`rehearsing GET ${target}: status ${status}`);
      return length;
    },
    async stop() {
      metrics.stop();
      await client.stop();
      await server.stop();
      await apiServer.stop();
      standIn.close();
    },
  };
}
