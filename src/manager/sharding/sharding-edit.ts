// The answer of admission to a created or changed ShardingConfig. Pure. Invariant: a child may only become
// what its root says.
import type { Problem } from "../../api/problems.ts";
import { fieldAt } from "../../api/rule.ts";
import { type ShardingConfig, validateShardingConfig } from "../../api/sharding-config.ts";
import { rootNameOf } from "../../api/sharding-config-rules.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import type { EditVerdict, Surroundings } from "../apps/app.ts";
import { checkEdit, overlapWarnings } from "../apps/check-edit.ts";
import { childrenOf } from "./children.ts";
import { type Family, familiesOf } from "./family.ts";
import { memberProblems } from "./family-problems.ts";
import { storedPlacement } from "./placement-annotation.ts";

/** @param before undefined at creation */
export function judgeEdit(before: unknown, after: unknown, surroundings: Surroundings): EditVerdict {
  const checked = checkEdit(before, after, validateShardingConfig, childProblems(after, surroundings));
  if (!("value" in checked)) return checked;
  const config = checked.value;
  if (config.metadata.deletionTimestamp !== undefined || rootNameOf(config.metadata) !== undefined) return ALLOWED;
  const family = familyWith(config, surroundings);
  const previous = checked.previous === undefined ? [] : (familyWith(checked.previous, surroundings)?.problems ?? []);
  const added = (family?.problems ?? []).filter((problem) => !previous.includes(problem));
  if (added.length > 0) return { problems: added.map((message) => ({ path: "", message })), warnings: [] };
  const { selector } = config.spec;
  const warnings = [
    ...(family === undefined ? [] : memberProblems(family)).map(
      (problem) => `the family is refused until this is corrected: ${problem}`,
    ),
    ...(selector === undefined ? [] : overlapWarnings("ShardingConfig", "spec.selector", selector, otherKinds(surroundings))),
  ];
  return { problems: [], warnings };
}

const ALLOWED: EditVerdict = { problems: [], warnings: [] };

/** The manager writes children too, so what is refused is the content and not the writer. */
function childProblems(after: unknown, { own }: Surroundings): Problem[] {
  const metadata = fieldAt(after, "metadata");
  const rootName = rootNameOf(metadata);
  const root = own?.object as ShardingConfig | undefined;
  const placement = root && storedPlacement(root);
  // A replica that does not know the root yet cannot judge.
  if (rootName === undefined || root === undefined || placement === undefined) return [];
  const name = fieldAt(metadata, "name");
  const child = childrenOf(root, placement).find((each) => each.metadata.name === name);
  if (child === undefined || isDeepEqual(fieldAt(after, "spec"), child.spec)) return [];
  return [{ path: "spec", message: `is made from ShardingConfig ${rootName}, and would be repaired: edit that one` }];
}

/** The family that the config is in, or will be in. */
function familyWith(config: ShardingConfig, { own, others }: Surroundings): Family | undefined {
  const around = [...(own === undefined ? [] : [own]), ...others].filter(({ ref }) => ref.kind === config.kind);
  const known = around.flatMap(({ objects }) => objects as readonly ShardingConfig[]);
  const rest = known.filter(({ metadata }) => metadata.name !== config.metadata.name);
  const isIn = ({ configs }: Family) => configs.includes(config);
  return familiesOf([...rest, config]).find(isIn);
}

// Shards of one namespace have selectors of one key on purpose.
function otherKinds({ others }: Surroundings): Surroundings["others"] {
  return others.filter(({ ref }) => ref.kind !== "ShardingConfig");
}
