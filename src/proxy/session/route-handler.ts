// The handler of the resource type "route": checks a snapshot, enforces it, stores it, and only then
// acknowledges it. Invariant: an ACK means that the rules are in force, that no write that they refuse is in
// flight (from this process or the one before), and that a restart cannot restore older rules.
import { sleep } from "../../base/clock.ts";
import { errorMessage, isMeshError, MeshError } from "../../base/errors.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { subsetDisplayName } from "../../route/words.ts";
import type { PodRef, ResourceMessage, UpdateMessage } from "../../wire/messages.ts";
import { ResourceInvalidError } from "../../wire/resource-type.ts";
import { ROUTE } from "../../wire/route-type.ts";
import type { Enforcer } from "./enforcer.ts";
import type { Answers } from "./resource-handler.ts";
import type { SessionMetrics } from "./session-metrics.ts";
import type { SnapshotFile } from "./snapshot-file.ts";

/**
 * What this proxy may still write to, for its registration. A new manager knows nothing else, so the claims
 * cover every write in flight:
 *
 * - The snapshot in force refuses new writes to what the pod has lost, but older writes may still run there.
 *   So a snapshot becomes `acknowledged` only when its ACK can be sent. Until then, the snapshot before it
 *   stays `acknowledged`.
 * - The snapshots that came into force since then already allow writes to what the pod has gained. So they
 *   are listed too (`inDoubt`). Each write in flight was allowed by one of the listed snapshots.
 * - The manager ends the doubt only after an ACK. It always sends a snapshot to such a proxy, and that ACK
 *   waits for the writes, as every ACK does. So a proxy can register at any time, and a write that never ends
 *   delays only its own ACK.
 * - A new process starts with the snapshot on disk, which was stored after the writes had ended and before
 *   the ACK. Writes of a killed process may outlive it, also in namespaces of a snapshot that was not stored
 *   yet. Until they are over, the proxy acknowledges nothing and may hold more than it lists (`mayHoldMore`).
 */
export interface Claims {
  readonly acknowledged: Snapshot | undefined;
  /** Oldest first; empty if `acknowledged` is in force. Beyond MAX_IN_DOUBT the oldest are missing. */
  readonly inDoubt: readonly Snapshot[];
  readonly mayHoldMore: boolean;
}

/** With more, the registration sets `mayHoldMore`: a full disk must not fill the memory. */
export const MAX_IN_DOUBT = 4;

const STORE_RETRY_MS = 1_000;

/**
 * How long after a start the API server may still carry out a write of a killed process, in milliseconds. The
 * kernel closes the connections of a killed process, and an API server cancels a request as soon as it reads
 * that. This is the assumed bound of the time for which a live API server leaves a connection unread. The
 * strict bound would be its request timeout, 60 s, but then each crash of a sidecar would delay every
 * handover by that time.
 */
export const INHERITED_WRITES_MS = 10_000;

export interface RouteHandlerDeps extends Pick<ProcessContext, "clock" | "log"> {
  readonly pod: PodRef;
  readonly enforcer: Enforcer;
  readonly file: Pick<SnapshotFile, "load" | "willChange" | "save">;
  readonly metrics: SessionMetrics;
  readonly signal: AbortSignal;
}

export function createRouteHandler(deps: RouteHandlerDeps) {
  const { enforcer, file, metrics, clock, log } = deps;
  let storing: Promise<void> = Promise.resolve();
  /** The digest in the file; undefined if it is unknown, or if routes or moves came since. */
  let storedDigest: string | undefined;
  let enforcements = 0;
  let claims: Omit<Claims, "mayHoldMore"> = { acknowledged: undefined, inDoubt: [] };
  /** On the monotonic clock. Until then nothing is acknowledged: the killed process may have allowed more. */
  let inheritedUntilMs = Number.NEGATIVE_INFINITY;
  const inheritedLeftMs = () => inheritedUntilMs - clock.monotonicMs();

  const enforce = (snapshot: Snapshot) => {
    const { version, digest, subset } = snapshot;
    metrics.routeVersion.set(version);
    if (enforcer.current?.snapshot.digest === digest) return enforcer.relabel(snapshot);
    claims = { ...claims, inDoubt: [...claims.inDoubt.slice(-MAX_IN_DOUBT), snapshot] };
    enforcements++;
    storedDigest = undefined;
    enforcer.enforce(snapshot);
    log.info({ version, digest, subset: subsetDisplayName(subset) }, "route snapshot enforced");
  };

  const save = async (snapshot: Snapshot) => {
    while (enforcer.current?.snapshot === snapshot && storedDigest !== snapshot.digest && !deps.signal.aborted) {
      storedDigest = undefined; // after a failed save the content of the file is unknown
      const enforcement = enforcements;
      try {
        await file.save(snapshot);
        if (enforcement === enforcements) storedDigest = snapshot.digest;
      } catch (error) {
        log.error({ err: error }, "snapshot not acknowledged: it cannot be stored");
        await sleep(clock, STORE_RETRY_MS, deps.signal).catch(() => undefined);
      }
    }
  };
  // Saves run one after the other. A waiting save is skipped when a newer snapshot is in force.
  const store = (snapshot: Snapshot): Promise<void> => {
    storing = storing.then(() => save(snapshot));
    return storing;
  };
  /** Saves the snapshot once more, since other content of the file has changed. */
  const storeAgain = () => {
    storing = storing.then(async () => {
      const snapshot = enforcer.current?.snapshot;
      if (snapshot === undefined || storedDigest !== snapshot.digest) return;
      storedDigest = undefined;
      await save(snapshot);
    });
  };

  const acknowledge = (snapshot: Snapshot, answers: Answers) => {
    enforcer.whenDrained(async () => {
      if (inheritedLeftMs() > 0) await sleep(clock, inheritedLeftMs(), deps.signal).catch(() => undefined);
      await store(snapshot);
      // Only the newest snapshot is acknowledged, and a newer one may have come while the file was written.
      if (enforcer.current?.snapshot !== snapshot || storedDigest !== snapshot.digest) return;
      claims = { acknowledged: snapshot, inDoubt: [] };
      answers.ack();
    });
  };

  const accept = (version: number, read: () => Snapshot, answers: Answers) => {
    let snapshot: Snapshot;
    try {
      snapshot = checkSnapshot(read(), deps.pod, enforcer.current?.snapshot);
    } catch (error) {
      const { reason, problems } = rejection(error);
      metrics.snapshotRejected.inc({ reason });
      log.warn({ err: error, version }, "route snapshot refused, the last good one stays");
      answers.nack(problems);
      return;
    }
    // From here on the snapshot is in force, so no NACK may follow.
    if (snapshot.digest !== enforcer.current?.snapshot.digest) file.willChange();
    enforce(snapshot);
    acknowledge(snapshot, answers);
  };
  const applyDelta = ({ version, digest, body }: ResourceMessage, baseDigest: string): Snapshot | undefined => {
    const base = enforcer.current?.snapshot;
    try {
      if (base?.digest !== baseDigest) throw new MeshError("DELTA_BASE", "delta to a snapshot that is not in force");
      return ROUTE.delta?.apply(base, body, { version, digest });
    } catch (error) {
      metrics.snapshotRejected.inc({ reason: "delta" });
      log.info({ err: error, version }, "delta not taken, asking for the whole snapshot");
      return undefined;
    }
  };

  return {
    /**
     * Puts the stored snapshot in force, if there is a usable one.
     * @param endedCleanly the process before left no write in flight
     * @param hasPromised an earlier process has followed a leader, so it may have served without a snapshot
     */
    async restore(endedCleanly: boolean, hasPromised = false): Promise<void> {
      const snapshot = await file.load(hasPromised);
      if (!endedCleanly && (snapshot !== undefined || hasPromised)) {
        inheritedUntilMs = clock.monotonicMs() + INHERITED_WRITES_MS;
        log.info(
          { waitMs: INHERITED_WRITES_MS },
          "the process before was killed: nothing is acknowledged until its writes are over",
        );
      }
      if (snapshot === undefined) return;
      enforce(snapshot);
      storedDigest = snapshot.digest;
      claims = { acknowledged: snapshot, inDoubt: [] };
    },
    capabilities: ROUTE.delta === undefined ? [] : [ROUTE.delta.capability],
    take({ resource, baseDigest }: UpdateMessage, answers: Answers) {
      if (resource === null) return answers.nack(["resource: missing"]);
      const { version, digest, body } = resource;
      if (baseDigest === "") return accept(version, () => ROUTE.decode(body, { version, digest }), answers);
      const next = applyDelta(resource, baseDigest);
      if (next === undefined) answers.needsWhole();
      else accept(version, () => next, answers);
    },
    storeAgain,
    get claims(): Claims {
      return { ...claims, mayHoldMore: inheritedLeftMs() > 0 };
    },
    /** No write of the process before can still reach the API server. */
    get isSettled(): boolean {
      return inheritedLeftMs() <= 0;
    },
    idle: () => storing,
  };
}

function checkSnapshot(snapshot: Snapshot, pod: PodRef, current: Snapshot | undefined): Snapshot {
  if (snapshot.podNamespace !== pod.namespace) {
    throw new ResourceInvalidError([`podNamespace: ${snapshot.podNamespace} is not this pod's namespace ${pod.namespace}`]);
  }
  if (current === undefined || snapshot.version >= current.version) return snapshot;
  // Equal rules with an older version are accepted. The version in force stays.
  if (snapshot.digest === current.digest) return { ...snapshot, version: current.version };
  throw new MeshError("SNAPSHOT_STALE", `version: ${snapshot.version} is older than ${current.version}, which is in force`);
}

function rejection(error: unknown): { reason: string; problems: readonly string[] } {
  if (error instanceof ResourceInvalidError) return { reason: "invalid", problems: error.problems };
  if (isMeshError(error, "SNAPSHOT_STALE")) return { reason: "stale", problems: [error.message] };
  return { reason: "error", problems: [errorMessage(error)] };
}
