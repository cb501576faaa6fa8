// The handovers: those under way, and the last one of each app.

import { age } from "../../apps/ages.ts";
import { counted } from "../../frame/output.ts";
import type { AppPart } from "../model/parts.ts";
import { titleOf } from "./choose-app.tsx";
import { hashOf } from "./place.ts";
import type { ViewProps } from "./view-props.ts";

export function Handovers({ apps, nowMs }: ViewProps) {
  const running = apps.filter(({ handover }) => handover !== undefined);
  const finished = apps
    .filter(({ lastHandover }) => lastHandover !== undefined)
    .sort((a, b) => ((a.lastHandover?.finishedAt ?? "") > (b.lastHandover?.finishedAt ?? "") ? -1 : 1));
  return (
    <>
      <section aria-label="Under way">
        <h3>Under way</h3>
        {running.length === 0 && <p class="empty">No namespace moves.</p>}
        <div class="cards">
          {running.map((app) => (
            <Running key={`${app.kind} ${titleOf(app)}`} app={app} nowMs={nowMs} />
          ))}
        </div>
      </section>
      <section aria-label="The last of each app">
        <h3>The last of each app</h3>
        {finished.length === 0 ? <p class="empty">None has finished yet.</p> : <Finished apps={finished} nowMs={nowMs} />}
      </section>
    </>
  );
}

interface RunningProps {
  readonly app: AppPart;
  readonly nowMs: number;
}

function Running({ app, nowMs }: RunningProps) {
  const { handover } = app;
  if (handover === undefined) return null;
  const {
    phase,
    from = "?",
    to = "?",
    between,
    namespaces,
    since,
    startedAt,
    done,
    total,
    noWriterSeconds,
    waitingOn = [],
  } = handover;
  const subsets = between === undefined ? `${from} → ${to}` : `between ${between.join(", ")}`;
  return (
    <article class="card">
      <h4>
        <a href={hashOf({ view: "map", app: titleOf(app), find: "" })}>{titleOf(app)}</a>
      </h4>
      <p class="route">
        {phase === "Paused" ? "kept by a pause" : subsets} ·{" "}
        {namespaces === undefined ? "resources" : counted(namespaces, "namespace")}
      </p>
      <p>
        {phase} for {age(since, nowMs)}
        {startedAt !== undefined && `, begun ${age(startedAt, nowMs)} ago`}
        {noWriterSeconds !== undefined && `, ${noWriterSeconds} s without a writer`}
      </p>
      {phase !== "Paused" && (
        <label class="progress">
          <progress max={Math.max(1, total)} value={done} /> {done} of {counted(total, "pod")} through
        </label>
      )}
      <ul class="plain">
        {waitingOn.map(({ namespace, pod, reason, since: began }) => (
          <li key={`${namespace} ${pod} ${reason}`}>
            waits for {pod === undefined ? reason : `pod ${pod}: ${reason}`} for {age(began, nowMs)}
            {namespace !== undefined && `, for example namespace ${namespace}`}
          </li>
        ))}
      </ul>
    </article>
  );
}

function Finished({ apps, nowMs }: { readonly apps: readonly AppPart[]; readonly nowMs: number }) {
  return (
    <table class="stacked">
      <thead>
        <tr>
          <th scope="col">App</th>
          <th scope="col">From, to</th>
          <th scope="col">Namespaces</th>
          <th scope="col">Finished</th>
          <th scope="col">Without a writer</th>
          <th scope="col">Result</th>
        </tr>
      </thead>
      <tbody>
        {apps.map((app) => {
          const { from = "", to = "", namespaces = 0, finishedAt, noWriterSeconds, result } = app.lastHandover ?? {};
          return (
            <tr key={`${app.kind} ${titleOf(app)}`}>
              <td data-label="App">{titleOf(app)}</td>
              <td data-label="From, to">
                {from} → {to}
              </td>
              <td data-label="Namespaces">{namespaces}</td>
              <td data-label="Finished" class="since" title={finishedAt}>
                {age(finishedAt, nowMs)} ago
              </td>
              <td data-label="Without a writer">{noWriterSeconds === undefined ? "–" : `${noWriterSeconds} s`}</td>
              <td data-label="Result">{result === "Undone" ? "↺ undone" : "✓ moved"}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
