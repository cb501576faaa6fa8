// The warm-up's own proxy: the ordinary server, layers and connections, with a stand-in for the API server and
// made-up routes. Invariant: but for the serving certificate it shares nothing with the real proxy, so it
// counts, stores and reports nothing.
import { silentLogger } from "../../base/log.ts";
import { Registry } from "../../base/metrics.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { JSON_TYPE } from "../../kube/media-types.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../../mesh/ownership/snapshot.ts";
import { createApiServer } from "../api-server/api-server.ts";
import { createTrustStore } from "../api-server/connector.ts";
import { createRecord } from "../call/call.ts";
import { readBody } from "../http/byte-stream.ts";
import type { CallSignal } from "../http/call-signal.ts";
import type { ServingCertificate } from "../identity/serving-certificate.ts";
import { createAccessLog } from "../observe/access-log.ts";
import { createOutbound } from "../outbound/create-outbound.ts";
import { createPolicies } from "../policies/policies.ts";
import { createPolicyMetrics } from "../policies/policy-metrics.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { NO_MEMORY } from "../session/memory.ts";
import { startStandIn } from "./stand-in.ts";

export interface WarmUpProxy {
  /** Sends a GET through the proxy. @returns the bytes of the answer. @throws Error if it does not succeed */
  get(path: string, signal: CallSignal): Promise<number>;
  stop(): Promise<void>;
}

const OWN_NAMESPACES = ["own-0", "own-1"];
/** More than a query excludes by name (mesh/ownership/plan-query.ts), so that the proxy filters the list. */
const OTHER_NAMESPACES = Array.from({ length: 20 }, (_, index) => `other-${index}`);
const ROUTES: Snapshot = {
  version: 1,
  digest: "",
  app: { namespace: "own-0", name: "warm-up" },
  subset: "warm-up",
  podNamespace: "own-0",
  lockName: "warm-up",
  callers: NO_CALLER_POLICY,
  table: {
    rules: [{ kind: "subset", subset: "warm-up", resources: [{ apiGroups: ["*"], resources: ["*"] }], origin: "" }],
    classes: [[], [0]],
    classOf: new Map([
      ...OTHER_NAMESPACES.map((name) => [name, 0] as const),
      ...OWN_NAMESPACES.map((name) => [name, 1] as const),
    ]),
    sharedResources: [],
    fenced: new Set(),
  },
};
const HEADERS = { authorization: "Bearer none", accept: JSON_TYPE, "user-agent": "ctrlmesh-proxy" };
const MAX_ANSWER_BYTES = 1024 * 1024;

const LISTEN = { host: "127.0.0.1", port: 0 };

/** @param caFile the CA of the certificate */
export async function startWarmUpProxy(
  certificate: ServingCertificate,
  caFile: string,
  { clock, random }: Pick<ProcessContext, "clock" | "random">,
): Promise<WarmUpProxy> {
  const log = silentLogger();
  const registry = new Registry();
  const context = { clock, random, log, registry };
  const standIn = await startStandIn(certificate.current(), [...OWN_NAMESPACES, ...OTHER_NAMESPACES]);
  const session = Object.assign(createEnforcer(), { memory: NO_MEMORY, report: () => undefined });
  session.enforce(ROUTES);
  const policies = createPolicies({ ...context, managerAwayMs: () => 0, metrics: createPolicyMetrics(registry) });
  const accessLog = createAccessLog({ share: 0, random, log });
  const settings = {
    listen: LISTEN,
    alsoListen: [],
    drainMs: 0,
    apiServer: standIn.url,
    apiServerCa: caFile,
    podName: "warm-up",
  };
  const { server, apiServer, metrics } = createOutbound(settings, { ...context, session, policies, certificate, accessLog });
  const stop = async () => {
    metrics.stop();
    await Promise.allSettled([server.stop(), apiServer.stop()]);
    standIn.close();
  };
  try {
    await Promise.all([apiServer, server].map((part) => part.start(new AbortController().signal)));
  } catch (error) {
    await stop();
    throw error;
  }
  const client = createClient(`https://${LISTEN.host}:${server.port}`, caFile, { clock, log });
  return {
    get: client.get,
    async stop() {
      await client.stop();
      await stop();
    },
  };
}

/** The proxy's own client, so that its code runs twice for each request. */
function createClient(apiServer: string, caFile: string, context: Pick<ProcessContext, "clock" | "log">) {
  const { send, stop } = createApiServer({
    apiServer,
    trust: createTrustStore(caFile, context.log),
    registry: new Registry(),
    ...context,
  });
  return {
    stop,
    async get(target: string, signal: CallSignal): Promise<number> {
      const info = parseRequestInfo("GET", target);
      const { status, body } = await send({
        method: "GET",
        target,
        info,
        headers: HEADERS,
        body: null,
        signal,
        record: createRecord(info),
      });
      const { length } = await readBody(body, MAX_ANSWER_BYTES);
      if (status !== 200) throw new Error(`warming up by GET ${target}: status ${status}`);
      return length;
    },
  };
}
