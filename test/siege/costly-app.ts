// VirtualApps that are valid and costly to compile: H2 of the findings. Pure.

const selectorOf = (component: string) => ({ matchLabels: { component } });

function spec(match: readonly object[][], onLoss = "InPlace"): object {
  const subRules = match.map((terms, index) => ({ name: `r${index}`, match: terms }));
  return {
    selector: selectorOf("siege"),
    configuration: { controller: { leaderElectionName: "siege" } },
    route: { onLoss, subRules },
    subsets: subRules.map(({ name }, index) => ({ name: `s${index}`, labels: { version: `v${index}` }, routeRules: [name] })),
  };
}

/**
 * In a name of a namespace either takes a while. The worst of all, with a word boundary, are no longer valid.
 */
const EXPRESSIONS = ["(?:(?:(?:[a-z0-9-]{29})+)+)*-$", "([a-z0-9][-a-z0-9]?){40}$"];

/** Inside the limits of regular expressions. @param variant makes it a new one, of either kind */
export function deepExpressions(variant: number): object {
  const expression = EXPRESSIONS[variant % EXPRESSIONS.length];
  const one = (index: number) => ({ namespaceRegex: `${"x?".repeat(index % 7)}${"y?".repeat(variant % 10)}${expression}` });
  return spec([Array.from({ length: 8 }, (_, index) => one(index)), Array.from({ length: 8 }, (_, index) => one(index + 3))]);
}

/** Terms of two expressions each, none of which matches. @param rules with 32 terms each */
export function largeSelectors(variant: number, rules = 64): object {
  const term = (index: number) => ({
    namespaceSelector: {
      matchExpressions: [
        { key: `siege.example.com/a${index}-${variant}`, operator: "NotIn", values: ["a", "b", "c"] },
        { key: `siege.example.com/b${index}`, operator: "In", values: ["a", "b", "c"] },
      ],
    },
  });
  return spec(Array.from({ length: rules }, (_, rule) => Array.from({ length: 32 }, (_, index) => term(rule * 32 + index))));
}
