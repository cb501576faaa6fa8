// The policies, and which breakers are open.

import { age } from "../../apps/ages.ts";
import type { PolicyPart } from "../model/parts.ts";
import type { ViewProps } from "./view-props.ts";

const READY: Readonly<Record<string, string>> = { True: "✓ ready", False: "✕ not ready" };

export function Policies({ policies, nowMs }: ViewProps) {
  const open = policies.filter((policy) => policy.open.length > 0 || (policy.pods?.opened ?? 0) > 0);
  return (
    <>
      <section aria-label="Open breakers">
        <h3>Open breakers</h3>
        {open.length === 0 && <p class="empty">✓ No breaker is open.</p>}
        <div class="cards">
          {open.map((policy) => (
            <Open key={titleOf(policy)} policy={policy} nowMs={nowMs} />
          ))}
        </div>
      </section>
      <section aria-label="All policies">
        <h3>All policies</h3>
        {policies.length === 0 ? <p class="empty">There is no policy here.</p> : <Table policies={policies} nowMs={nowMs} />}
      </section>
    </>
  );
}

function titleOf({ kind, namespace, name }: PolicyPart): string {
  return `${kind} ${namespace}/${name}`;
}

interface OpenProps {
  readonly policy: PolicyPart;
  readonly nowMs: number;
}

function Open({ policy, nowMs }: OpenProps) {
  return (
    <article class="card">
      <h4>{titleOf(policy)}</h4>
      <p>
        open in {policy.pods?.opened ?? policy.open.length} of {policy.pods?.total ?? "?"} pods
      </p>
      <ul class="plain">
        {policy.open.map(({ pod, rule, state, cause, since }) => (
          <li key={`${pod} ${rule}`}>
            <strong>{state === "HalfOpen" ? "◐ half open" : "○ open"}</strong> rule {rule} in pod {pod}
            {since !== undefined && ` for ${age(since, nowMs)}`}
            {cause !== undefined && <div class="message">{cause}</div>}
          </li>
        ))}
      </ul>
    </article>
  );
}

function Table({ policies, nowMs }: { readonly policies: readonly PolicyPart[]; readonly nowMs: number }) {
  return (
    <table class="stacked">
      <thead>
        <tr>
          <th scope="col">Policy</th>
          <th scope="col">State</th>
          <th scope="col">Mode</th>
          <th scope="col">Pods</th>
          <th scope="col">Open</th>
          <th scope="col">Ends</th>
        </tr>
      </thead>
      <tbody>
        {policies.map((policy) => {
          const { ready, mode, pods, endsAt, faultsSince } = policy;
          return (
            <tr key={titleOf(policy)}>
              <td data-label="Policy">{titleOf(policy)}</td>
              <td data-label="State">
                {READY[ready.status] ?? "not known yet"} ({ready.reason})
                {ready.message !== "" && <div class="message">{ready.message}</div>}
              </td>
              <td data-label="Mode">
                {faultsSince === undefined ? (mode ?? "–") : `${mode ?? ""}, faults for ${age(faultsSince, nowMs)}`}
              </td>
              <td data-label="Pods">{pods === undefined ? "–" : `${pods.synced} of ${pods.total} in sync`}</td>
              <td data-label="Open">{pods?.opened ?? "–"}</td>
              <td data-label="Ends">{endsAt ?? "–"}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
