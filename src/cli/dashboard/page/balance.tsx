// How the subsets or shards of each app divide its namespaces.

import { counted } from "../../frame/output.ts";
import type { AppPart } from "../model/parts.ts";
import { titleOf } from "./choose-app.tsx";
import type { ViewProps } from "./view-props.ts";

export function Balance({ apps }: ViewProps) {
  if (apps.length === 0) return <p class="empty">There is no app here.</p>;
  return (
    <div class="cards wide">
      {apps.map((app) => (
        <AppBalance key={`${app.kind} ${titleOf(app)}`} app={app} />
      ))}
    </div>
  );
}

function AppBalance({ app }: { readonly app: AppPart }) {
  const { subsets } = app;
  const most = Math.max(1, ...subsets.map(({ namespaces }) => namespaces));
  return (
    <article class="card">
      <h3>
        {app.kind} {titleOf(app)}
      </h3>
      <p class="facts">{facts(app)}</p>
      <table class="bars">
        <thead>
          <tr>
            <th scope="col">Subset</th>
            <th scope="col" class="number">
              Namespaces
            </th>
            <th scope="col" class="bar">
              <span class="unseen">Bar</span>
            </th>
            <th scope="col">Pods</th>
          </tr>
        </thead>
        <tbody>
          {subsets.map(({ name, namespaces, readyPods, pods }) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{namespaces}</td>
              <td class="bar">
                <Bar part={namespaces / most} mean={(app.shards?.balance?.mean ?? 0) / most} />
              </td>
              <td class={readyPods === 0 ? "lacking" : ""}>
                {readyPods === 0 && "✕ "}
                {readyPods}
                {pods === undefined ? "" : ` of ${pods}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </article>
  );
}

/** @param mean where the mean is; 0 for none */
function Bar({ part, mean }: { readonly part: number; readonly mean: number }) {
  return (
    <svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="ground" width="100" height="10" />
      <rect class="value" width={Math.max(part === 0 ? 0 : 0.5, part * 100)} height="10" />
      {mean > 0 && <path class="mean" d={`M${Math.min(99.5, mean * 100)} 0v10`} />}
    </svg>
  );
}

function facts({ namespaces, proxies, shards = {} }: AppPart): string {
  const { balance, gaps = 0, overlaps = 0, standby = 0 } = shards;
  return [
    namespaces === undefined ? "" : counted(namespaces.total, "namespace"),
    proxies === undefined ? "" : `${proxies.synced} of ${counted(proxies.total, "pod")} in sync`,
    balance === undefined
      ? ""
      : `largest ${balance.largest}, smallest ${balance.smallest}, mean ${round(balance.mean)} (the line), skew ${round(balance.skew)}`,
    gaps === 0 ? "" : `${gaps} in no shard`,
    overlaps === 0 ? "" : `${overlaps} in two shards`,
    standby === 0 ? "" : `${counted(standby, "pod")} on standby`,
  ]
    .filter((text) => text !== "")
    .join(" · ");
}

const round = (value: number) => String(Math.round(value * 100) / 100);
