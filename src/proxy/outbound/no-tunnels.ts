// Refuses what becomes a tunnel into a pod or node of another cluster: its bytes would pass after the decision about it.
import { firstSubresource } from "../../kube/request-info.ts";
import { isEndless, isWatch } from "../../kube/request-kind.ts";
import { StatusError } from "../../kube/status.ts";
import { type Layer, noteDecision } from "../call/call.ts";

export const noTunnels: Layer = (next) => (call) => {
  const { info, upgrade, record } = call;
  const isTunnel = upgrade !== undefined || (isEndless(info) && info.kind === "resource" && firstSubresource(info) !== "log");
  if (!isTunnel || isWatch(info)) return next(call);
  noteDecision(record, "refused", "upgrade");
  throw new StatusError(
    "MethodNotAllowed",
    "ctrlmesh: the proxy does not serve exec, attach, port-forward and proxy in other clusters",
  );
};
