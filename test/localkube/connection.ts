// Serves one request: authenticates it, reads it, dispatches it, and writes the answer and the audit entry. Only this file turns
// errors into Status answers.
import type { IncomingMessage, ServerResponse } from "node:http";
import { errorMessage, isMeshError } from "../../src/base/errors.ts";
import { JSON_TYPE, mediaTypeOf, PROTOBUF_TYPE } from "../../src/kube/media-types.ts";
import { parseRequestInfo, type RequestInfo, type ResourceInfo } from "../../src/kube/request-info.ts";
import { createStatus, type Status, StatusError } from "../../src/kube/status.ts";
import type { AuditLog } from "./audit.ts";
import type { Authenticator, User } from "./auth.ts";
import type { Backend } from "./backend.ts";
import { readBody } from "./body.ts";
import { decodeBody, type Negotiated, negotiate } from "./content.ts";
import { describeOpenApi, discover } from "./discovery.ts";
import { noSuchResource } from "./failures.ts";
import { asString, fieldAt } from "./model/object.ts";
import type { ResourceType } from "./model/registry.ts";
import { type Representation, representEvent, representList, representObject } from "./represent.ts";
import { handleResource, type Outcome, resolveType, scopeOf } from "./resource-handler.ts";
import { createSelection } from "./selection.ts";
import { runWatch, type WatchSink, type WatchTiming } from "./watch.ts";

export interface Services {
  readonly backend: Backend;
  readonly auth: Authenticator;
  readonly audit: AuditLog;
  readonly timing: WatchTiming;
  /** How many bytes a watch may buffer for a slow reader. */
  readonly maxBufferBytes: number;
  /** The host:port that discovery returns. */
  address(): string;
}

/** What the audit knows of a request, also if the request fails. */
interface Seen {
  user: User;
  info?: RequestInfo;
  /** metadata.name of the body, since the path of a create has no name. */
  bodyName: string;
}

const PUBLIC_PATHS = new Set(["/healthz", "/livez", "/readyz", "/version"]);
const BODY_TYPES = new Set(["", JSON_TYPE, "application/yaml", PROTOBUF_TYPE]);
const ANONYMOUS: User = { username: "system:anonymous", groups: ["system:unauthenticated"] };

/** Answers one request. Never rejects. */
export async function serve(services: Services, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const receivedAt = services.backend.clock.now();
  const seen: Seen = { user: ANONYMOUS, bodyName: "" };
  try {
    const user = services.auth.authenticate(request.headers.authorization);
    if (user !== undefined) seen.user = user;
    seen.info = readInfo(request);
    if (user === undefined && !PUBLIC_PATHS.has(seen.info.path.replace(/(?<=z)\/.*$/, "")))
      throw new StatusError("Unauthorized", "Unauthorized");
    await dispatch(services, request, response, seen.info, seen);
  } catch (error) {
    fail(request, response, error);
  }
  record(services.audit, request, response, seen, receivedAt);
}

function readInfo(request: IncomingMessage): RequestInfo {
  try {
    return parseRequestInfo(request.method ?? "GET", request.url ?? "/");
  } catch (error) {
    if (isMeshError(error, "BAD_REQUEST_TARGET")) throw new StatusError("BadRequest", error.message, undefined, { cause: error });
    throw error;
  }
}

async function dispatch(
  services: Services,
  request: IncomingMessage,
  response: ServerResponse,
  info: RequestInfo,
  seen: Seen,
): Promise<void> {
  if (info.kind === "non-resource") {
    serveNonResource(services, response, info);
    return;
  }
  const { backend, auth } = services;
  const type = resolveType(backend, info);
  const negotiated = negotiate(request.headers.accept);
  if (info.verb === "watch") {
    serveWatch(services, request, response, info, type, negotiated);
    return;
  }
  const contentType = mediaTypeOf(request.headers["content-type"]);
  const bytes = await readBody(request);
  if (info.verb !== "patch" && bytes.length > 0 && !BODY_TYPES.has(contentType)) {
    throw new StatusError(
      "UnsupportedMediaType",
      `the body of the request was in an unknown format: ${contentType}; localkube reads application/json and application/yaml`,
    );
  }
  const body = decodeBody(bytes, contentType);
  seen.bodyName = asString(fieldAt(body, "metadata.name"));
  const outcome = handleResource(backend, auth, {
    info,
    type,
    user: seen.user,
    userAgent: request.headers["user-agent"] ?? "",
    mediaType: contentType,
    body,
  });
  answer(response, outcome, representation(info, type, negotiated, backend));
}

function representation(info: ResourceInfo, type: ResourceType, negotiated: Negotiated, backend: Backend): Representation {
  return { type, negotiated, includeObject: info.query.get("includeObject") ?? "Metadata", now: backend.clock.now() };
}

function answer(response: ServerResponse, outcome: Outcome, how: Representation): void {
  if ("object" in outcome) sendJson(response, outcome.code, representObject(outcome.object, how));
  else if ("list" in outcome) sendJson(response, outcome.code, representList(outcome.list, how));
  else sendJson(response, outcome.code, outcome.json);
}

function serveNonResource({ backend, address }: Services, response: ServerResponse, info: RequestInfo): void {
  const { segments, method } = info;
  if (method !== "GET" && method !== "HEAD")
    throw new StatusError("MethodNotAllowed", "the server does not allow this method on the requested resource", {});
  if (["healthz", "livez", "readyz"].includes(segments[0] ?? "")) {
    response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end("ok");
    return;
  }
  const document = info.path === "/version" ? VERSION : documentFor(backend, segments, address());
  if (document === undefined) throw noSuchResource();
  sendJson(response, 200, document);
}

function documentFor(backend: Backend, segments: readonly string[], address: string): object | undefined {
  if (segments[0] === "openapi" && segments[1] === "v3")
    return describeOpenApi(backend.registry, segments, backend.store.version);
  return discover(backend.registry, segments, address);
}

const VERSION = { major: "1", minor: "36", gitVersion: "v1.36.3-localkube", platform: "node" };

function serveWatch(
  services: Services,
  request: IncomingMessage,
  response: ServerResponse,
  info: ResourceInfo,
  type: ResourceType,
  negotiated: Negotiated,
): void {
  const how = representation(info, type, negotiated, services.backend);
  const query = new URLSearchParams(info.query);
  if (info.nameInPath) query.append("fieldSelector", `metadata.name=${info.name}`);
  const selection = createSelection(type, scopeOf({ info, type }), query);
  request.resume();
  let withHeaders = true;
  const sink: WatchSink = {
    send(event) {
      start();
      response.write(`${JSON.stringify(representEvent(event, { ...how, now: services.backend.clock.now() }, withHeaders))}\n`);
      withHeaders = false;
      return response.writableLength <= services.maxBufferBytes;
    },
    end(why) {
      start();
      if (why === "done") response.end();
      else response.destroy();
    },
  };
  const start = () => {
    if (!response.headersSent) response.writeHead(200, { "content-type": JSON_TYPE });
  };
  const close = runWatch(services.backend.store, type, selection, query, sink, services.timing);
  response.on("close", close);
  start();
  response.flushHeaders();
}

function fail(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  const status: Status =
    error instanceof StatusError ? error.status : createStatus("InternalError", `Internal error: ${errorMessage(error)}`);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // The rest of the request is not read, so the connection cannot be used again.
  if (!request.complete) response.setHeader("connection", "close");
  const retryAfter = status.details?.retryAfterSeconds;
  if (retryAfter !== undefined) response.setHeader("retry-after", String(retryAfter));
  sendJson(response, status.code, status);
}

function sendJson(response: ServerResponse, code: number, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(code, { "content-type": JSON_TYPE, "content-length": bytes.length }).end(bytes);
}

function record(
  audit: AuditLog,
  request: IncomingMessage,
  response: ServerResponse,
  { user, info, bodyName }: Seen,
  receivedAt: number,
): void {
  const place =
    info?.kind === "resource" ? info : { group: "", version: "", resource: "", namespace: "", name: "", subresource: "" };
  audit.record({
    verb: info?.verb ?? (request.method ?? "").toLowerCase(),
    user: user.username,
    ...(user.extra === undefined ? {} : { userExtra: user.extra }),
    userAgent: request.headers["user-agent"] ?? "",
    group: place.group,
    version: place.version,
    resource: place.resource,
    namespace: place.namespace,
    name: place.name || bodyName,
    subresource: place.subresource,
    requestURI: request.url ?? "",
    code: response.statusCode,
    receivedAt,
  });
}
