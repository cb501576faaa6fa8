// The proxy's pages under /debug on the health listener. Put together in assemble.ts.
import type { Page } from "../../base/health-server.ts";
import type { Session } from "../session/session.ts";
import { type RequestsPageDeps, requestsPage } from "./requests-page.ts";
import { snapshotPage } from "./snapshot-page.ts";

/** The last query plans, newest first. */
export interface PlanSource {
  list(): readonly object[];
}

export interface DebugPagesDeps extends RequestsPageDeps {
  readonly session: Pick<Session, "current">;
  readonly plans: PlanSource;
}

const MAX_PLANS = 200;

/** The pages by path. */
export function debugPages({ session, plans, ...deps }: DebugPagesDeps): Readonly<Record<string, Page>> {
  return {
    "/debug/snapshot": () => snapshotPage(session.current?.snapshot),
    "/debug/plans": () => ({ plans: plans.list().slice(0, MAX_PLANS) }),
    "/debug/requests": requestsPage(deps),
  };
}
