// `ctrlmesh events`: the Events of an app and of its pods, in their order.
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { EVENTS, type Event, PODS } from "../../kube/client/resources.ts";
import { age } from "../apps/ages.ts";
import { findApp } from "../apps/apps.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { columns } from "../frame/output.ts";

export const EVENT_LIST: Command = {
  name: "events",
  args: "APP",
  maxArgs: 1,
  summary: "the Events of an app and of its pods, in their order",
  flags: {},
  async run({ args: [name], flags, output, clock, cluster }: Call) {
    const connected = await cluster();
    const app = await findApp(connected, name, namespaceOf(flags, connected.namespace));
    const [events, pods] = await Promise.all([
      connected.list(EVENTS, app.namespace),
      connected.list(PODS, app.namespace, `${INJECTED_LABEL}=${app.name}`),
    ]);
    const subjects = new Set([
      ...app.objects.map(({ metadata }) => `${app.kind.resource.kind} ${metadata.name}`),
      ...pods.map(({ metadata }) => `Pod ${metadata.name}`),
    ]);
    const own = events.filter((event) => subjects.has(subjectOf(event))).sort((a, b) => timeOf(a).localeCompare(timeOf(b)));
    const rows = own.map((event) => {
      // The API server leaves out what is empty.
      const { type = "-", reason = "-", message = "" }: Partial<Event> = event;
      return [age(timeOf(event), clock.now()), type, reason, subjectOf(event), message];
    });
    output.data(
      "EventList",
      { items: own },
      rows.length === 0 ? [] : columns([["AGE", "TYPE", "REASON", "OBJECT", "MESSAGE"], ...rows]),
    );
    if (rows.length === 0) output.hint("there is no Event about it: the API server keeps them for an hour by default");
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
