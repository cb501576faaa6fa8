// The proxy's pages under /debug on the health listener, for people. Invariant: each page is bounded for any
// size of the cluster, and holds no secrets.
import { type Clock, sleep } from "../base/clock.ts";
import { MeshError } from "../base/errors.ts";
import type { Page } from "../base/health-server.ts";
import { CLUSTER_SCOPE, isBucket, placeHash } from "../kube/place.ts";
import { CLUSTERS_PATH } from "../mesh/ownership/clusters.ts";
import { frozenInside } from "../mesh/ownership/frozen-places.ts";
import { lockNameFor } from "../mesh/ownership/lock.ts";
import { ownersOf } from "../mesh/ownership/owners.ts";
import type { Snapshot } from "../mesh/ownership/snapshot.ts";
import { namespacesOf } from "../mesh/ownership/table.ts";
import { ownerText, subsetDisplayName, subsetText } from "../mesh/ownership/words.ts";
import type { EgressTarget } from "../policy/policy-request.ts";
import { type ExplainConnectDeps, explainConnect } from "./egress/explain-connect.ts";
import { clusterRefusal } from "./egress/refusals.ts";
import { targetOf } from "./egress/target.ts";
import { readAskedRequest } from "./explain/asked-request.ts";
import { type ExplainDeps, explainRequest } from "./explain/explain-request.ts";
import type { AccessFields, AccessLog } from "./observe/access-log.ts";
import { ownersPage } from "./owners-page.ts";
import type { Policies } from "./policies/policies.ts";
import type { Session } from "./session/session.ts";

export interface DebugPagesDeps extends Pick<ExplainConnectDeps, "gate" | "random" | "home"> {
  readonly accessLog: Pick<AccessLog, "tap">;
  readonly clock: Clock;
  readonly session: Pick<Session, "current">;
  readonly policies: Pick<Policies, "describe" | "matching">;
  /** Newest first. */
  readonly plans: { list(): readonly object[] };
}

const MAX_PLANS = 200;

export function debugPages(deps: DebugPagesDeps): Readonly<Record<string, Page>> {
  const { session, policies, plans } = deps;
  return {
    "/debug/snapshot": () => snapshotPage(session.current?.snapshot),
    "/debug/owner": (query) => {
      const { current } = session;
      return query.has("cluster") ? clusterPage(query, deps) : ownerPage(query, current?.snapshot);
    },
    "/debug/owners": (query) => ownersPage(query, session.current?.snapshot),
    "/debug/explain": (query) => explainPage(query, deps),
    "/debug/plans": () => ({ plans: plans.list().slice(0, MAX_PLANS) }),
    "/debug/policies": () => policiesPage(policies),
    "/debug/requests": requestsPage(deps),
  };
}

const MAX_POLICY_RULES = 500;

/** The rules of policies in force, those first whose breaker is not closed. */
export function policiesPage(policies: Pick<Policies, "describe">): object {
  return { rules: bounded(policies.describe(), MAX_POLICY_RULES) };
}

const MAX_COUNT = 1_000;
const MAX_SECONDS = 60;
const MAX_READERS = 4;

/** /debug/requests?count=20&seconds=10: the next requests, until the count, the time or the reader ends. */
export function requestsPage({ accessLog, clock }: Pick<DebugPagesDeps, "accessLog" | "clock">): Page {
  let readers = 0;
  return async (query, signal) => {
    const count = parameter(query, "count", 20, MAX_COUNT);
    const seconds = parameter(query, "seconds", 10, MAX_SECONDS);
    if (readers >= MAX_READERS) throw new MeshError("BAD_REQUEST", `${MAX_READERS} readers at once are enough`);
    readers++;
    const requests: AccessFields[] = [];
    const full = new AbortController();
    const untap = accessLog.tap((fields) => {
      if (requests.length < count) requests.push(fields);
      if (requests.length >= count) full.abort();
    });
    try {
      await sleep(clock, seconds * 1_000, AbortSignal.any([signal, full.signal])).catch(() => undefined);
      return { requests };
    } finally {
      untap();
      readers--;
    }
  };
}

function parameter(query: URLSearchParams, name: string, fallback: number, max: number): number {
  const text = query.get(name) ?? String(fallback);
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
  throw new MeshError("BAD_REQUEST", `${name}: ${JSON.stringify(text)} is not a whole number from 1 to ${max}`);
}

const MAX_NAME = 253;

/** /debug/owner?namespace=team-b: who owns it; `group` and `resource` for rules that name resources. */
export function ownerPage(query: URLSearchParams, snapshot: Snapshot | undefined): object {
  const [namespace = "", group = "", resource = ""] = ["namespace", "group", "resource"].map((name) => query.get(name) ?? "");
  if (namespace === "" || namespace.length > MAX_NAME)
    throw new MeshError("BAD_REQUEST", "namespace: must be the name of a namespace");
  if (snapshot === undefined) return { namespace, owner: null };
  const { app, subset, version } = snapshot;
  const owner = ownersOf(snapshot.table, group, resource).ownerOf(namespace);
  const frozen = snapshot.frozen?.find((each) => each.namespace === namespace)?.reason;
  return { app, subset: subsetDisplayName(subset), namespace, owner: ownerText(owner, namespace), frozen, version };
}

/**
 * /debug/owner?cluster=eu-1: who owns another cluster, by the name of its MeshCluster, and whether this pod may write there now. If
 * its namespaces are divided, `namespace` names one of them; `group` and `resource` are as for the owner at home.
 */
export function clusterPage(
  query: URLSearchParams,
  { session, gate, home }: Omit<ExplainConnectDeps, "policies" | "random">,
): object {
  const name = query.get("cluster") ?? "";
  if (name === "" || name.length > MAX_NAME) throw new MeshError("BAD_REQUEST", "cluster: must be the name of a MeshCluster");
  const { snapshot } = session.current ?? {};
  if (snapshot === undefined) return { cluster: name, owner: null };
  const { app, subset, version, clusters = [] } = snapshot;
  const head = { app, subset: subsetDisplayName(subset), cluster: name, version };
  const cluster = clusters.find((each) => each.name === name);
  if (cluster === undefined) return { ...head, owner: "every pod" };
  if (cluster.upstream !== undefined) return { ...head, ...ownerInside(query, name, snapshot) };
  const owner = subsetText(cluster.owner);
  if (home === undefined) return { ...head, owner, access: "not limited: the pod has no annotation egress" };
  const refusal = clusterRefusal(cluster, { subset, closedFor: gate.closedFor, home });
  return { ...head, owner, access: refusal?.code ?? "open" };
}

function ownerInside(query: URLSearchParams, name: string, snapshot: Snapshot): object {
  const access = `only at ${CLUSTERS_PATH}${name}/`;
  const table = snapshot.clusterTables?.get(name);
  if (table === undefined) return { owner: null, access: "closed: the manager does not know the cluster's namespaces yet" };
  if (!query.has("namespace")) return { owner: "by namespace", access };
  const { version: _, ...owner } = ownerPage(query, { ...snapshot, table, frozen: frozenInside(snapshot.frozen, name) }) as {
    version?: number;
  };
  return { ...owner, access };
}

/** The most stages and rules that an explanation names. */
const MAX_STEPS = 200;

/** /debug/explain?verb=delete&group=apps&resource=deployments&namespace=team-b&name=web: what the proxy would do now. */
export function explainPage(query: URLSearchParams, deps: ExplainPageDeps): object {
  const explained = askedAbout(query);
  if (deps.session.current === undefined)
    return {
      decision: "refused",
      reason: "no-snapshot",
      code: 503,
      message: "this proxy has no routes yet",
      steps: bounded([], 0),
    };
  const { steps, ...explanation } = explained(deps);
  return { ...explanation, steps: bounded(steps, MAX_STEPS) };
}

type ExplainPageDeps = ExplainDeps & Pick<ExplainConnectDeps, "home">;

/** `verb=connect` with `server=eu-1.example:6443` is about a tunnel to another server. @throws MeshError `BAD_REQUEST` */
function askedAbout(query: URLSearchParams): (deps: ExplainPageDeps) => { readonly steps: readonly object[] } {
  if (query.get("verb") !== "connect") {
    const asked = readAskedRequest(query);
    return (deps) => explainRequest(asked, deps);
  }
  const target = tunnelTo(query.get("server") ?? "");
  return (deps) => explainConnect(target, deps);
}

function tunnelTo(server: string): EgressTarget {
  try {
    return targetOf("CONNECT", server, {});
  } catch (error) {
    throw new MeshError("BAD_REQUEST", "server: must be host:port", { cause: error });
  }
}

const MAX_RULES = 200;
const MAX_CLASSES = 100;
const MAX_NAMES = 100;

export function snapshotPage(snapshot: Snapshot | undefined): object {
  if (snapshot === undefined) return { snapshot: null };
  const { version, digest, app, subset, podNamespace, lockName, table, callers, guard = "Enforce", frozen = [] } = snapshot;
  const names: string[][] = table.classes.map(() => []);
  for (const [place, index] of table.classOf) names[index]?.push(placeText(place));
  const classes = table.classes.map((rules, index) => ({ rules, namespaces: bounded(names[index]?.sort() ?? [], MAX_NAMES) }));
  return {
    version,
    digest,
    app,
    subset: subsetDisplayName(subset),
    podNamespace,
    lock: lockName === "" ? null : { name: lockName, upstream: lockNameFor(lockName, subset) },
    rules: bounded(table.rules, MAX_RULES),
    sharedResources: bounded(table.sharedResources, MAX_RULES),
    namespaces: { total: namespacesOf(table).length, classes: bounded(classes, MAX_CLASSES) },
    fenced: bounded([...table.fenced].map(placeText).sort(), MAX_NAMES),
    retained: bounded(retainedPlaces(table).map(placeText).sort(), MAX_NAMES),
    callers,
    guard,
    frozen,
  };
}

function retainedPlaces({ retained = [] }: Snapshot["table"]): string[] {
  return retained.flatMap(({ namespaces }) => [...namespaces]);
}

function placeText(place: string): string {
  if (isBucket(place)) return `(cluster scope, names with the hash ${placeHash(place)})`;
  return place === CLUSTER_SCOPE ? "(cluster scope)" : place;
}

function bounded<T>(all: readonly T[], max: number) {
  return { total: all.length, first: all.slice(0, max), truncated: all.length > max };
}
