// `ctrlmesh explain request`: what a pod's sidecar would do with a request. Invariant: the sidecar itself says it.
import { z } from "zod";
import { serverOf } from "../../api/mesh-cluster.ts";
import { askSidecar } from "../apps/ask-sidecar.ts";
import { findResource } from "../apps/find-resource.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, type Command, type FlagValues, nameOf, POD_WORDS, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { columns } from "../frame/output.ts";

const ANSWER = z.looseObject({
  subset: z.string().optional(),
  version: z.number().optional(),
  request: z.string().optional(),
  decision: z.string(),
  reason: z.string().optional(),
  code: z.number().optional(),
  message: z.string(),
  steps: z.object({ first: z.array(z.object({ stage: z.string(), says: z.string() })), total: z.number() }),
});

/** What the operator gets instead of an answer of the API server. */
const REFUSALS: ReadonlySet<string> = new Set(["refused", "fenced"]);

export const EXPLAIN_REQUEST: Command = {
  name: "explain request",
  args: "POD VERB RESOURCE[/NAME]",
  maxArgs: 3,
  summary: "what the sidecar of a pod would do with a request, or with CONNECT to a server",
  flags: {
    in: { type: "string", value: "NAMESPACE", help: "the namespace of the request; default: cluster scope, or all namespaces" },
    subresource: { type: "string", value: "NAME", help: "for example status, or exec" },
    "user-agent": { type: "string", value: "TEXT", help: "of the operator, for rules about callers" },
    user: { type: "string", value: "USER", help: "of the operator, for exceptions of policies" },
  },
  async run({ args: [pod, verb, target], flags, output, cluster }: Call) {
    if (pod === undefined || verb === undefined || target === undefined)
      throw usageError(
        "name a pod, a verb and a resource, for example: explain request shop-0 delete deployments.apps/web --in team-b",
      );
    const connected = await cluster();
    const query = verb.toLowerCase() === "connect" ? connectQuery(target, flags) : await queryOf(connected, verb, target, flags);
    const ref = { namespace: namespaceOf(flags, connected.namespace), name: nameOf(pod, POD_WORDS) };
    const answer = await askSidecar(connected, ref, { path: `/debug/explain?${query}`, schema: ANSWER });
    const { subset, version, request = "", decision, reason, code, message, steps } = answer;
    const who = subset === undefined ? `pod ${ref.name}` : `pod ${ref.name} (subset ${subset}, route ${version})`;
    const verdict = [decision, ...(code === undefined ? [] : [`with ${code}`]), ...(reason === undefined ? [] : [`(${reason})`])];
    output.data("RequestExplanation", { ...answer, pod: ref, steps: steps.first }, [
      `${who}: ${request}`,
      `  ${verdict.join(" ")}: ${message}`,
      ...columns(
        steps.first.map(({ stage, says }) => [stage, says]),
        "    ",
      ),
    ]);
    return REFUSALS.has(decision) ? EXIT.findings : EXIT.ok;
  },
};

/** A tunnel to another server, as `https://eu-1.example:6443` or as host:port. Its content is not visible, so no flag is about it. */
function connectQuery(target: string, flags: FlagValues): URLSearchParams {
  const meant = Object.keys(EXPLAIN_REQUEST.flags).find((flag) => flags.text(flag) !== undefined);
  if (meant !== undefined) throw usageError(`--${meant}: the sidecar does not see what is inside of a tunnel`);
  const server = target.includes("://") ? serverOf(target) : target;
  if (server === undefined) throw usageError(`"${target}" is no URL of a server, such as https://eu-1.example.com:6443`);
  return new URLSearchParams({ verb: "connect", server });
}

async function queryOf(cluster: Cluster, verb: string, target: string, flags: FlagValues): Promise<URLSearchParams> {
  const callers = { userAgent: flags.text("user-agent") ?? "", user: flags.text("user") ?? "" };
  if (target.startsWith("/")) {
    const meant = ["in", "subresource"].find((flag) => flags.text(flag) !== undefined);
    if (meant !== undefined) throw usageError(`--${meant}: a path has it already: ${target}`);
    return new URLSearchParams({ verb, path: target, ...callers });
  }
  const [typed = "", name = "", ...more] = target.split("/");
  if (more.length > 0) throw usageError(`"${target}" is no RESOURCE/NAME; a subresource is named with --subresource`);
  const { group, version, resource, isNamespaced } = await findResource(cluster, typed);
  const namespace = flags.text("in") ?? "";
  if (namespace !== "" && !isNamespaced) throw usageError(`--in: objects of ${resource} have no namespace`);
  const scope = isNamespaced ? "namespaced" : "cluster";
  const subresource = flags.text("subresource") ?? "";
  return new URLSearchParams({ verb, group, version, resource, subresource, namespace, name, scope, ...callers });
}
