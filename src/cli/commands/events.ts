// `ctrlmesh events`: the Events of an app and of its pods, in their order.
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { EVENTS, type Event, PODS } from "../../kube/client/resources.ts";
import { age } from "../apps/ages.ts";
import { appOf } from "../apps/app-of.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { printTable } from "../frame/table.ts";

export const EVENT_LIST: Command = {
  name: "events",
  args: "APP",
  maxArgs: 1,
  summary: "the Events of an app and of its pods, in their order",
  flags: {},
  async run(call: Call) {
    const { cluster, app } = await appOf(call);
    const [events, pods] = await Promise.all([
      cluster.list(EVENTS, app.namespace),
      cluster.list(PODS, app.namespace, `${INJECTED_LABEL}=${app.name}`),
    ]);
    const subjects = new Set([
      ...app.objects.map(({ metadata }) => `${app.kind.resource.kind} ${metadata.name}`),
      ...pods.map(({ metadata }) => `Pod ${metadata.name}`),
    ]);
    // The API server leaves out what is empty.
    const items: readonly Event[] = events
      .filter((event) => subjects.has(subjectOf(event)))
      .sort((a, b) => timeOf(a).localeCompare(timeOf(b)));
    printTable(call.output, {
      kind: "EventList",
      items,
      columns: {
        AGE: (event) => age(timeOf(event), call.clock.now()),
        TYPE: ({ type }) => type,
        REASON: ({ reason }) => reason,
        OBJECT: subjectOf,
        MESSAGE: ({ message }) => message,
      },
      ifNone: "there is no Event about it: the API server keeps them for an hour by default",
    });
    return EXIT.ok;
  },
};

function subjectOf({ involvedObject: { kind = "", name = "" } }: Event): string {
  return `${kind} ${name}`;
}

/** Events of the newer form have only the time of their creation. */
function timeOf({ lastTimestamp, firstTimestamp, metadata }: Event): string {
  return lastTimestamp ?? firstTimestamp ?? metadata.creationTimestamp ?? "";
}
