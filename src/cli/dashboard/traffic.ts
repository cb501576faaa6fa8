// The requests of an app, asked of its sidecars for as long as somebody looks at them. Invariant: for each app one question is under way at a
// time, however many pages look, and for few apps at once, since each question takes a process for each pod.
import type { ServerResponse } from "node:http";
import { errorMessage } from "../../base/errors.ts";
import { isRefused, requestsOf, requestText, summaries, type TappedRequest } from "../apps/tapped-requests.ts";
import type { Cluster } from "../frame/cluster.ts";
import { oneLine } from "../frame/output.ts";
import type { Traffic } from "./model/parts.ts";

const SECONDS = 3;
const MAX_APPS = 2;
const MAX_ROWS = 200;
const MAX_REFUSED = 50;
/** NAMESPACE/NAME, as Kubernetes allows them. */
const APP = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/;

/** Answers GET traffic?app=NAMESPACE/NAME after a few seconds. */
export function createTraffic(cluster: Cluster): (query: URLSearchParams, response: ServerResponse) => Promise<void> {
  const asking = new Map<string, Promise<Traffic>>();
  return async (query, response) => {
    const reply = (code: number, content: object) =>
      void response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(content));
    const app = query.get("app") ?? "";
    const [, namespace, name] = APP.exec(app) ?? [];
    if (namespace === undefined || name === undefined) return reply(400, { problem: "app must be NAMESPACE/NAME" });
    if (!asking.has(app) && asking.size >= MAX_APPS)
      return reply(503, { problem: "other pages listen to other apps: close one" });
    let question = asking.get(app);
    if (question === undefined) {
      question = listen(cluster, { namespace, name }).finally(() => asking.delete(app));
      asking.set(app, question);
    }
    try {
      reply(200, await question);
    } catch (error) {
      reply(502, { problem: oneLine(errorMessage(error)) });
    }
  };
}

async function listen(cluster: Cluster, app: { readonly namespace: string; readonly name: string }): Promise<Traffic> {
  const problems: string[] = [];
  const requests = await requestsOf(cluster, app, { seconds: SECONDS, hint: (text) => problems.push(oneLine(text)) });
  return {
    seconds: SECONDS,
    pods: new Set(requests.map(({ pod }) => pod)).size,
    rows: summaries(requests)
      .slice(0, MAX_ROWS)
      .map((row) => ({ ...row, request: oneLine(row.request) })),
    refused: refusals(requests).slice(0, MAX_REFUSED),
    problems,
  };
}

/** Equal ones are one with its count. */
function refusals(requests: readonly TappedRequest[]): Traffic["refused"] {
  const groups = Map.groupBy(requests.filter(isRefused), (request) =>
    JSON.stringify([request.pod, requestText(request), whyOf(request)]),
  );
  const counts = [...groups.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [{ first, count: 1 + others.length }],
  );
  return counts
    .sort((a, b) => b.count - a.count)
    .map(({ first, count }) => ({
      pod: oneLine(first.pod),
      count,
      request: oneLine(requestText(first)),
      why: oneLine(whyOf(first)),
    }));
}

function whyOf({ code, decision, reason, rule }: TappedRequest): string {
  return [String(code), decision, reason, rule].filter((part) => part !== undefined).join(" ");
}
