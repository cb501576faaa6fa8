// Says of a view which kinds it cannot show, and which right or CRD is missing.
import type { KindPart } from "../model/parts.ts";
import type { View } from "./place.ts";

const APPS = ["virtualapps", "shardingconfigs"];
const POLICIES = ["trafficpolicies", "circuitbreakers", "faultinjections"];

const KINDS_OF: Readonly<Record<View, readonly string[]>> = {
  waiting: [...APPS, ...POLICIES],
  map: [...APPS, "ownershipslices"],
  handovers: APPS,
  balance: APPS,
  policies: POLICIES,
  traffic: APPS,
};

interface Props {
  readonly kinds: readonly KindPart[];
  readonly view: View;
  readonly namespace: string | undefined;
}

export function KindNotices({ kinds, view, namespace }: Props) {
  const shown = kinds.filter(({ resource, state }) => {
    return state !== "shown" && state !== "loading" && KINDS_OF[view].includes(resource.split(".")[0] ?? "");
  });
  if (shown.length === 0) return null;
  return (
    <ul class="notices">
      {shown.map((kind) => (
        <li key={kind.resource}>
          <strong>
            {kind.kind} {kind.state === "failed" ? "cannot be read now." : "is not shown."}
          </strong>{" "}
          {whyNot(kind, namespace)}
        </li>
      ))}
    </ul>
  );
}

function whyNot({ state, resource, problem = "" }: KindPart, namespace: string | undefined): string {
  const where = namespace === undefined ? "in all namespaces" : `in namespace ${namespace}`;
  if (state === "forbidden") return `You need the right to list and watch ${resource} ${where}.`;
  if (state === "missing") return `This cluster does not serve ${resource}: its CRD is not installed.`;
  return problem;
}
