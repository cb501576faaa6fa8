// The frame around the views: title, state of the connection, navigation, and what changes as a sentence for screen readers.
import { useMemo } from "preact/hooks";
import { age } from "../../apps/ages.ts";
import { counted } from "../../frame/output.ts";
import type { AppPart, KindPart, Part, PolicyPart } from "../model/parts.ts";
import { waitingItems } from "../model/waiting.ts";
import { Balance } from "./balance.tsx";
import type { Feed } from "./feed.ts";
import { Handovers } from "./handovers.tsx";
import { useSame } from "./hooks.ts";
import { KindNotices } from "./kind-notices.tsx";
import { OwnershipMap } from "./ownership-map.tsx";
import { hashOf, type Place, VIEWS, type View } from "./place.ts";
import { Policies } from "./policies.tsx";
import { TrafficView } from "./traffic.tsx";
import type { ViewProps } from "./view-props.ts";
import { Waiting } from "./waiting-list.tsx";

const TITLES: Readonly<Record<View, string>> = {
  waiting: "Waiting",
  map: "Map",
  handovers: "Handovers",
  balance: "Balance",
  policies: "Policies",
  traffic: "Traffic",
};

const CONTENTS: Readonly<Record<View, (props: ViewProps) => preact.JSX.Element>> = {
  waiting: Waiting,
  map: OwnershipMap,
  handovers: Handovers,
  balance: Balance,
  policies: Policies,
  traffic: TrafficView,
};

interface FrameProps {
  readonly feed: Feed;
  readonly place: Place;
  choose(changes: Partial<Place>): void;
}

export function Frame({ feed, place, choose }: FrameProps) {
  const { parts, tick, about } = feed;
  const all = useSame([...parts.values()]);
  const sorted = useMemo(() => byKind(all), [all]);
  const waiting = useMemo(() => waitingItems(all), [all]);
  const Content = CONTENTS[place.view];
  const nowMs = tick?.nowMs ?? 0;
  const isLoading = sorted.kinds.length === 0 || sorted.kinds.every(({ state }) => state === "loading");
  return (
    <>
      <button type="button" class="skip" onClick={focusContent}>
        Skip to the content
      </button>
      <header>
        <h1>Controller Mesh</h1>
        <p class="scope">
          {about === undefined ? "" : about.namespace === undefined ? "all namespaces" : `namespace ${about.namespace}`}
        </p>
        <ConnectionState feed={feed} />
        <nav aria-label="Views">
          {VIEWS.map((view) => (
            <a
              key={view}
              href={hashOf({ view, app: place.app, find: "" })}
              aria-current={view === place.view ? "page" : undefined}
            >
              {TITLES[view]}
              {view === "waiting" && waiting.length > 0 && <span class="count">{waiting.length}</span>}
            </a>
          ))}
        </nav>
      </header>
      <main id="content" tabIndex={-1}>
        <h2>{HEADINGS[place.view]}</h2>
        <KindNotices kinds={sorted.kinds} view={place.view} namespace={about?.namespace} />
        {isLoading ? (
          <p class="empty">Reading the cluster …</p>
        ) : (
          <Content {...sorted} waiting={waiting} nowMs={nowMs} place={place} access={about?.access ?? []} choose={choose} />
        )}
      </main>
      <footer>
        Read-only, and on this machine only. Owners are those that the manager has published; this page computes none.
        {about !== undefined && ` ctrlmesh ${about.version}`}
      </footer>
      <Announcer waiting={waiting.length} moving={movingIn(sorted.apps)} feed={feed} />
    </>
  );
}

const HEADINGS: Readonly<Record<View, string>> = {
  waiting: "What waits, for whom, since when",
  map: "Who owns what",
  handovers: "Handovers",
  balance: "How the subsets divide the namespaces",
  policies: "Policies, breakers and faults",
  traffic: "Requests of an operator",
};

/** No link: the hash of the address is the place. */
function focusContent(): void {
  document.getElementById("content")?.focus();
}

function byKind(parts: readonly Part[]) {
  const titleOf = ({ namespace, name }: { readonly namespace: string; readonly name: string }) => `${namespace}/${name}`;
  const inOrder = <T extends AppPart | PolicyPart>(of: T[]) => of.sort((a, b) => (titleOf(a) < titleOf(b) ? -1 : 1));
  return {
    apps: inOrder(parts.filter((part) => part.part === "app")),
    slices: parts.filter((part) => part.part === "slice"),
    policies: inOrder(parts.filter((part) => part.part === "policy")),
    kinds: parts.filter((part): part is KindPart => part.part === "kind"),
  };
}

function movingIn(apps: readonly AppPart[]): number {
  return apps.reduce((sum, { namespaces }) => sum + (namespaces?.moving ?? 0), 0);
}

function ConnectionState({ feed: { tick, isLive } }: { readonly feed: Feed }) {
  if (!isLive)
    return <p class="connection away">ctrlmesh dashboard does not answer. Start it again, and open its new address.</p>;
  if (tick === undefined) return <p class="connection">connecting</p>;
  const { awaySinceMs, nowMs, problem } = tick;
  if (awaySinceMs === undefined) return <p class="connection live">live</p>;
  const since = age(new Date(awaySinceMs).toISOString(), nowMs);
  return (
    <p class="connection away" title={problem}>
      No answer from the API server since {since}, showing what was known
    </p>
  );
}

/** Polite, and only when a sentence changes: a move that comes and goes within a tick says nothing. */
function Announcer({ waiting, moving, feed }: { readonly waiting: number; readonly moving: number; readonly feed: Feed }) {
  const { tick, isLive } = feed;
  const away = !isLive || tick?.awaySinceMs !== undefined;
  // Texts of one length of time are one sentence, so that nothing is said again each second.
  const text = away ? "The connection is lost." : `Waiting: ${waiting}. Moving: ${counted(moving, "namespace")}.`;
  const said = useMemo(() => text, [Math.floor((tick?.nowMs ?? 0) / 5_000), away]);
  return (
    <p role="status" class="unseen">
      {said}
    </p>
  );
}
