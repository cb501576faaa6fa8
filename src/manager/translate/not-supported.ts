// What a valid spec asks and this version does not do. Pure. Invariant: nothing is ignored in silence. A field whose absence
// would show an app more than was asked refuses the spec; one that merely does nothing yet is named in a condition.
import type { VirtualAppSpec } from "../../api/virtual-app.ts";

export interface NotSupported {
  /** Paths that widen what the app sees if they are left out. */
  readonly refused: readonly string[];
  /** Paths that have no effect yet. */
  readonly idle: readonly string[];
}

export function notSupported({ configuration, route }: VirtualAppSpec): NotSupported {
  const matches = [
    ...(route?.globalLimits ?? []).map((match, index) => ({ match, path: `spec.route.globalLimits[${index}]` })),
    ...(route?.subRules ?? []).flatMap((rule, at) =>
      rule.match.map((match, index) => ({ match, path: `spec.route.subRules[${at}].match[${index}]` })),
    ),
  ];
  return {
    refused: [
      ...matches.flatMap(({ match, path }) => (match.objectSelector === undefined ? [] : [`${path}.objectSelector`])),
      ...(route?.subsetDefaultOnlyUserAgents?.length ? ["spec.route.subsetDefaultOnlyUserAgents"] : []),
    ],
    idle: [
      ...(configuration?.webhook === undefined ? [] : ["spec.configuration.webhook"]),
      ...(configuration?.restConfigOverrides === undefined ? [] : ["spec.configuration.restConfigOverrides"]),
    ],
  };
}
