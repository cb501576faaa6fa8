// What waits, for whom, and since when: the page's first view.

import { age } from "../../apps/ages.ts";
import type { WaitingItem } from "../model/waiting.ts";
import { hashOf } from "./place.ts";
import type { ViewProps } from "./view-props.ts";

const MAX_ROWS = 200;

/** A sign and a word, so that nothing depends on colour. */
const URGENCIES = { stuck: "✕ stuck", waits: "◔ waits", held: "‖ held" } as const;

export function Waiting({ waiting, apps, policies, nowMs, access }: ViewProps) {
  if (apps.length + policies.length === 0)
    return <p class="empty">There is no app and no policy here. ctrlmesh dashboard -A shows all namespaces.</p>;
  if (waiting.length === 0)
    return <p class="empty">✓ Nothing waits. No namespace moves, and every condition is as it should be.</p>;
  return (
    <>
      <table class="stacked">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">What</th>
            <th scope="col">Waits for</th>
            <th scope="col">Since</th>
            <th scope="col">Next</th>
          </tr>
        </thead>
        <tbody>
          {waiting.slice(0, MAX_ROWS).map((item) => (
            <Row key={item.id} item={item} nowMs={nowMs} access={access} />
          ))}
        </tbody>
      </table>
      {waiting.length > MAX_ROWS && <p>{waiting.length - MAX_ROWS} more are not shown.</p>}
    </>
  );
}

interface RowProps {
  readonly item: WaitingItem;
  readonly nowMs: number;
  readonly access: readonly string[];
}

function Row({ item: { urgency, subject, app, what, whom, since, message, next }, nowMs, access }: RowProps) {
  return (
    <tr class={urgency}>
      <td data-label="State">
        <span class={`badge ${urgency}`}>{URGENCIES[urgency]}</span>
      </td>
      <td data-label="What">
        {what}
        <br />
        <span class="subject">
          {app === undefined ? subject : <a href={hashOf({ view: "map", app, find: "" })}>{subject}</a>}
        </span>
      </td>
      <td data-label="Waits for">
        {whom}
        {message !== undefined && message !== "" && <div class="message">{message}</div>}
      </td>
      <td data-label="Since" class="since" title={since}>
        {since === undefined ? "" : age(since, nowMs)}
      </td>
      <td data-label="Next">
        <code>
          {[...next, ...access].map((word) => (
            <>
              <span>{word}</span>{" "}
            </>
          ))}
        </code>
      </td>
    </tr>
  );
}
