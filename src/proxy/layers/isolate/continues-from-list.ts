// Whether a watch goes on from an earlier list. Such a watch is never answered 503 while a namespace moves: client-go repeats it
// silently with its old version, and would never list again. Asked by the isolate layer and by admission.

/** True unless the watch sends the whole state first: without a resourceVersion, or with "0", or as a WatchList, it does. */
export function continuesFromList(query: URLSearchParams): boolean {
  const version = query.get("resourceVersion") ?? "";
  const sendsState = (query.get("sendInitialEvents") ?? "false").toLowerCase();
  return version !== "" && version !== "0" && (sendsState === "false" || sendsState === "0");
}
