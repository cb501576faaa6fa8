// Keeps a stream to the leading manager replica: connects, registers, hands updates to the handlers, reports,
// follows redirects, and comes back after any failure. Invariants: a failure never touches what is in force,
// and the proxy waits for no replica without end.
import { onAbort } from "../../base/abort.ts";
import { type BackoffOptions, type Clock, sleep } from "../../base/clock.ts";
import { errorMessage, isMeshError, MeshError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { ReportMessage } from "../../mesh/contract/messages.ts";
import type { Greeting } from "../../mesh/link/registration.ts";
import type { ManagerAccess, ManagerPass } from "../identity/manager-access.ts";
import { isRefusal, type ManagerChannel, openManagerChannel, reasonOf } from "../identity/manager-channel.ts";
import { createMeshDialog, type MeshDialog, type MeshDialogDeps } from "./mesh-dialog.ts";
import { type MeshStream, openMeshStream } from "./mesh-stream.ts";
import { BACKOFF, createLeaderFinder, NO_RETRIES, nextRetry, type Outcome } from "./next-attempt.ts";
import type { SessionMetrics } from "./session-metrics.ts";

type DialogDeps = Pick<MeshDialogDeps, "promise" | "handlers">;

export interface MeshClientDeps extends DialogDeps, Pick<ProcessContext, "clock" | "random" | "log"> {
  /** host:port */
  readonly manager: string;
  readonly access: ManagerAccess;
  /** Asked for each stream. */
  registration(): Promise<Greeting>;
  /** The last report of each kind, for each stream. */
  reports(): readonly ReportMessage[];
  readonly metrics: SessionMetrics;
  readonly backoff?: BackoffOptions | undefined;
  readonly network?: { readonly connect: typeof openManagerChannel; readonly open: typeof openMeshStream };
}

/**
 * How long the proxy waits for the handshake and for the answer to its registration, in milliseconds. Each
 * silent attempt in a row doubles the time, since the replicas may be busy with proxies that gave up. The
 * Service may lead to a stopped replica until its probe fails, so `reach` is short; a manager answers a
 * thousand handshakes within it.
 */
const PATIENCE = { reach: { ms: 1_000, most: 2_000 }, answer: { ms: 10_000, most: 80_000 } };
/** A stream that lasted so long was neither turned away nor a failure from the start. */
const SERVED_MS = 1_000;

export function createMeshClient(deps: MeshClientDeps) {
  const { clock, log, metrics } = deps;
  const { connect, open } = deps.network ?? { connect: openManagerChannel, open: openMeshStream };
  const channels = createChannels(deps.manager, connect, clock);
  const trouble = createManagerTrouble(log);
  const backoff = deps.backoff ?? BACKOFF;
  let stream: MeshStream | undefined;
  let current: MeshDialog | undefined;
  /** When the proxy last followed a manager; a replica that redirects or fails does not count. */
  let followedMs = Number.NEGATIVE_INFINITY;
  const patience = { reach: PATIENCE.reach.ms, answer: PATIENCE.answer.ms };

  // A function of its own, so that no closure keeps the tables of a registration as long as its stream lasts.
  const begin = async (endpoint: string) => {
    const greeting = await deps.registration();
    return { registration: greeting.registration, dialog: createMeshDialog({ ...deps, endpoint, greeting }) };
  };

  const streamOnce = async (endpoint: string, signal: AbortSignal): Promise<Outcome> => {
    const pass = await deps.access.pass();
    const { registration, dialog } = await begin(endpoint);
    let isReached = false;
    let connectedMs: number | undefined;
    const opened = open({
      channel: channels.to(endpoint, pass),
      metadata: pass.metadata,
      registration: { registration },
      onReachable() {
        deadline.cancel();
        isReached = true;
        patience.reach = PATIENCE.reach.ms;
        if (connectedMs === undefined) deadline = clock.after(patience.answer, () => giveUp("answer"));
      },
      onConnected() {
        deadline.cancel();
        channels.served(endpoint);
        trouble.clear();
        connectedMs = clock.monotonicMs();
        patience.answer = PATIENCE.answer.ms;
        metrics.managerConnected.set(1);
      },
      onMessage: dialog.take,
    });
    dialog.answerOn(opened);
    const giveUp = (doing: keyof typeof patience) => {
      patience[doing] = Math.min(patience[doing] * 2, PATIENCE[doing].most);
      opened.close(new MeshError("MANAGER_SILENT", `waiting for ${endpoint} (${doing}): no answer in time`));
    };
    let deadline = clock.after(patience.reach, () => giveUp("reach"));
    stream = opened;
    current = dialog;
    for (const report of deps.reports()) opened.send({ report });
    const unlink = onAbort(signal, () => opened.close());
    try {
      const error = await opened.ended;
      const { redirect, hasBroughtUpdates } = dialog;
      const servedMs = connectedMs === undefined ? -1 : clock.monotonicMs() - connectedMs;
      // A replica that turns a proxy away does so immediately.
      const served = servedMs >= (redirect === undefined ? 0 : SERVED_MS);
      channels.release(endpoint, isReached && !served && !isMeshError(error, "MANAGER_SILENT"));
      return { error, redirect, served, isOfUse: hasBroughtUpdates || (served && servedMs >= SERVED_MS) };
    } finally {
      deadline.cancel();
      unlink();
      stream = undefined;
      current = undefined;
      if (dialog.hasFollowed) followedMs = clock.monotonicMs();
      metrics.managerConnected.set(0);
    }
  };

  /** An attempt that cannot even begin counts as one more failure. */
  const connectOnce = async (endpoint: string, signal: AbortSignal): Promise<Outcome> => {
    try {
      return await streamOnce(endpoint, signal);
    } catch (cause) {
      channels.release(endpoint, false);
      const unreachable = () =>
        new MeshError("MANAGER_UNREACHABLE", `connecting to ${endpoint}: ${errorMessage(cause)}`, { cause });
      const error = isAccessError(cause) ? cause : unreachable();
      return { error, redirect: undefined, served: false, isOfUse: false };
    }
  };

  return {
    get trouble() {
      return trouble.trouble;
    },
    /** 0 while the proxy follows a manager. */
    get managerAwayMs(): number {
      return current?.isFollowing ? 0 : clock.monotonicMs() - followedMs;
    },
    /** Does nothing without a stream. */
    report: (report: ReportMessage) => stream?.send({ report }),
    async run(signal: AbortSignal): Promise<void> {
      const finder = createLeaderFinder(deps.manager, clock);
      let retries = NO_RETRIES;
      while (!signal.aborted) {
        const { endpoint } = finder;
        const outcome = await connectOnce(endpoint, signal);
        if (signal.aborted) break;
        trouble.ended(endpoint, outcome);
        const next = nextRetry(retries, outcome, finder.next(outcome), { backoff, random: deps.random });
        retries = next.retries;
        if (next.delayMs > 0) await sleep(clock, next.delayMs, signal).catch(() => undefined);
      }
      channels.close();
    },
  };
}

/** Why there is no stream, for /readyz and the log. A reason that only a user can fix is logged once. */
function createManagerTrouble(log: Logger) {
  let trouble: string | undefined;
  let loggedTrouble: string | undefined;
  return {
    get trouble(): string | undefined {
      return trouble;
    },
    clear() {
      trouble = undefined;
      loggedTrouble = undefined;
    },
    ended(endpoint: string, { error, redirect }: Outcome): void {
      // A replica that names the leader has believed this pod.
      if (redirect !== undefined) trouble = undefined;
      else if (error !== undefined) trouble = reasonOf(error, endpoint);
      if (!isRefusal(error) && !isAccessError(error)) {
        log.info({ endpoint, redirect, reason: error?.message }, "stream to the manager ended");
        return;
      }
      if (loggedTrouble !== trouble)
        log.warn({ endpoint, reason: trouble }, "no way to the manager; keeping the routes in force and trying again");
      loggedTrouble = trouble;
    },
  };
}

function isAccessError(error: unknown): error is MeshError {
  return isMeshError(error, "TOKEN_UNREADABLE") || isMeshError(error, "MANAGER_CA_UNREADABLE");
}

const KEPT_MS = 20_000;

/**
 * The proxy's connections to replicas: one through the Service, and one to a replica that another has named.
 * The first stays open while its replica lives but does not serve, since asking it again costs no handshake.
 * After KEPT_MS another replica is asked: one that is cut off from the API server never learns who leads.
 * @param service host:port that leads to any replica
 */
function createChannels(service: string, connect: (endpoint: string, pass: ManagerPass) => ManagerChannel, clock: Clock) {
  let redirectChannel: ManagerChannel | undefined;
  let serviceChannel: ManagerChannel | undefined;
  let openedMs = 0;
  let openedWith: ManagerPass | undefined;

  const drop = () => {
    serviceChannel?.close();
    serviceChannel = undefined;
  };
  return {
    /** To be released when its stream is over. @param pass for a new connection */
    to(endpoint: string, pass: ManagerPass): ManagerChannel {
      if (endpoint !== service) {
        redirectChannel = connect(endpoint, pass);
        return redirectChannel;
      }
      // gRPC renews a connection that breaks, but keeps the CAs that it was first given.
      const trustsOthers = pass.credentials !== openedWith?.credentials;
      if (trustsOthers || clock.monotonicMs() - openedMs >= KEPT_MS) drop();
      if (serviceChannel === undefined) {
        serviceChannel = connect(service, pass);
        openedWith = pass;
        openedMs = clock.monotonicMs();
      }
      return serviceChannel;
    },
    served(endpoint: string): void {
      if (endpoint !== service) drop();
    },
    /** @param answered the replica at the other end is alive but does not serve */
    release(endpoint: string, answered: boolean): void {
      if (endpoint === service && !answered) drop();
      redirectChannel?.close();
      redirectChannel = undefined;
    },
    close: drop,
  };
}
