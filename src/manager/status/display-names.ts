// Translates the name of the default subset: `default` in a written status, the empty string in the code.
// Pure. Invariant: reading accepts both, because an older manager wrote the empty string.
import type { AppStatus } from "../../api/app-status.ts";
import { subsetDisplayName, subsetOfDisplayName } from "../../route/subset-name.ts";

/** The status of an object, with names as the code knows them. */
export function readStatus(status: AppStatus | undefined): AppStatus | undefined {
  return status && renameSubsets(status, subsetOfDisplayName);
}

/** The status to write, with names as people see them. */
export function displayedStatus(status: AppStatus): AppStatus {
  return renameSubsets(status, subsetDisplayName);
}

function renameSubsets(status: AppStatus, rename: (subset: string) => string): AppStatus {
  const { subsets, handover, lastHandover, restart } = status;
  const parties = (step: Parties) => ({
    ...(step.from !== undefined && { from: rename(step.from) }),
    ...(step.to !== undefined && { to: rename(step.to) }),
    ...(step.between !== undefined && { between: step.between.map(rename) }),
  });
  return {
    ...status,
    ...(subsets && { subsets: uniqueByName(subsets.map((each) => ({ ...each, name: rename(each.name) }))) }),
    ...(handover && { handover: { ...handover, ...parties(handover) } }),
    ...(lastHandover && { lastHandover: { ...lastHandover, ...parties(lastHandover) } }),
    ...(restart && { restart: { ...restart, subset: rename(restart.subset) } }),
  };
}

// A spec from before `default` was reserved may have a subset of that name, and the API server refuses a list
// that has a name twice.
function uniqueByName<S extends { readonly name: string }>(subsets: readonly S[]): S[] {
  return subsets.filter(({ name }, index) => subsets.findIndex((each) => each.name === name) === index);
}

type Parties = Partial<Pick<NonNullable<AppStatus["handover"]>, "from" | "to" | "between">>;
