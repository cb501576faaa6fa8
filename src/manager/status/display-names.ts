// Translates the name of the default subset: `default` in a written status, the empty string in the code.
// Pure. Invariant: reading accepts both, because an older manager wrote the empty string. Called wherever a
// status is read or written.
import type { AppStatus } from "../../api/app-status.ts";
import { subsetDisplayName, subsetOfDisplayName } from "../../route/subset-name.ts";

/** The status of an object, with names as the code knows them. */
export function readStatus(status: AppStatus | undefined): AppStatus | undefined {
  return status === undefined ? undefined : renameSubsets(status, subsetOfDisplayName);
}

/** The status to write, with names as people see them. */
export function displayedStatus(status: AppStatus): AppStatus {
  return renameSubsets(status, subsetDisplayName);
}

function renameSubsets(status: AppStatus, rename: (subset: string) => string): AppStatus {
  const { subsets, handover, lastHandover, restart } = status;
  return {
    ...status,
    ...(subsets === undefined ? {} : { subsets: uniqueByName(subsets.map((each) => ({ ...each, name: rename(each.name) }))) }),
    ...(handover === undefined ? {} : { handover: renameParties(handover, rename) }),
    ...(lastHandover === undefined ? {} : { lastHandover: renameParties(lastHandover, rename) }),
    ...(restart === undefined ? {} : { restart: { ...restart, subset: rename(restart.subset) } }),
  };
}

// A spec from before `default` was reserved may have a subset of that name, and the API server refuses a list
// that has a name twice.
function uniqueByName<S extends { readonly name: string }>(subsets: readonly S[]): S[] {
  return subsets.filter(({ name }, index) => subsets.findIndex((each) => each.name === name) === index);
}

interface Parties {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly between?: readonly string[] | undefined;
}

function renameParties<P extends Parties>(parties: P, rename: (subset: string) => string): P {
  const { from, to, between } = parties;
  return {
    ...parties,
    ...(from === undefined ? {} : { from: rename(from) }),
    ...(to === undefined ? {} : { to: rename(to) }),
    ...(between === undefined ? {} : { between: between.map(rename) }),
  };
}
