// `ctrlmesh owners`: who owns each place of the apps, from their OwnershipSlices. Invariant: no owner is computed here.
import { SLICE_APP_LABEL } from "../../api/ownership-slice.ts";
import { age } from "../apps/ages.ts";
import { findApp } from "../apps/apps.ts";
import { listSlices, type OwnedPlace, ownerText, placesOf, placeText, resourcesText } from "../apps/owned-places.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { ALL_NAMESPACES, namespaceOf } from "../frame/flags.ts";
import { columns, counted } from "../frame/output.ts";

export const OWNERS: Command = {
  name: "owners",
  args: "[APP]",
  maxArgs: 1,
  summary: "who owns each namespace, here and in other clusters, in what state and since when",
  flags: ALL_NAMESPACES,
  formats: ["wide"],
  async run({ args: [name], flags, output, clock, cluster }: Call) {
    const connected = await cluster();
    const isWide = flags.text("output") === "wide";
    const home = flags.isSet("all-namespaces") ? undefined : namespaceOf(flags, connected.namespace);
    const app = name === undefined ? undefined : await findApp(connected, name, home);
    const namespace = app?.namespace ?? home;
    const slices = await listSlices(connected, namespace, app && `${SLICE_APP_LABEL}=${app.name}`);
    const places = slices.flatMap(placesOf).sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
    const head = ["APP", "PLACE", "OWNER", "STATE", "SINCE", ...(isWide ? ["RESOURCES", "SLICE"] : [])];
    const rows = places.map((each) => [
      each.app,
      placeText(each),
      ownerText(each),
      each.from === undefined ? each.state : `${each.state} from ${each.from.join(", ")}`,
      age(each.since, clock.now()),
      ...(isWide ? [resourcesText(each), each.slice] : []),
    ]);
    output.data("OwnerList", { items: places }, places.length === 0 ? [] : columns([head, ...rows]));
    const left = slices.reduce((sum, slice) => sum + slice.places, 0) - places.length;
    if (left > 0) output.hint(`${counted(left, "place")} more not shown: another version has written them`);
    const where = namespace === undefined ? "in this cluster" : `in namespace ${namespace}`;
    const none = `there is no OwnershipSlice ${app === undefined ? "" : `of ${app.name} `}${where}`;
    if (slices.length === 0)
      output.hint(`${none}; the manager writes them a second after the first routes, unless it has --ownership-slices=false`);
    return slices.length === 0 && app !== undefined ? EXIT.failed : EXIT.ok;
  },
};

/** By app, then home and each other cluster; there the namespaces by name, and the cluster scope. */
function orderOf({ app, namespace, bucket = -1, cluster = "" }: OwnedPlace): string {
  const place = namespace === undefined ? `1 ${bucket + 100}` : `0 ${namespace}`;
  return `${app} ${cluster} ${place}`;
}
