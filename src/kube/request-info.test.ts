import { describe, expect, it } from "vitest";
import { parseRequestInfo } from "./request-info.ts";

const read = (method: string, target: string) => {
  const info = parseRequestInfo(method, target);
  if (info.kind !== "resource") return `${info.verb} ${info.path}`;
  const { verb, group, version, namespace, resource, name, subresource } = info;
  return [verb, group, version, namespace, resource, name, subresource].join("|");
};

describe("parseRequestInfo", () => {
  it.each([
    ["GET", "/api/v1/namespaces/a/pods", "list||v1|a|pods||"],
    ["GET", "/api/v1/pods?watch=true", "watch||v1||pods||"],
    ["GET", "/api/v1/pods?watch", "watch||v1||pods||"],
    ["GET", "/api/v1/pods?watch=0", "list||v1||pods||"],
    ["GET", "/api/v1/pods?watch=False", "list||v1||pods||"],
    ["HEAD", "/api/v1/namespaces/a/pods/x", "get||v1|a|pods|x|"],
    ["GET", "/api/v1/namespaces/a", "get||v1|a|namespaces|a|"],
    ["GET", "/api/v1/namespaces", "list||v1||namespaces||"],
    ["PUT", "/api/v1/namespaces/a/finalize", "update||v1|a|namespaces|a|finalize"],
    ["POST", "/apis/apps/v1/namespaces/a/deployments", "create|apps|v1|a|deployments||"],
    ["PATCH", "/apis/apps/v1/namespaces/a/deployments/d/status", "patch|apps|v1|a|deployments|d|status"],
    ["DELETE", "/api/v1/namespaces/a/pods", "deletecollection||v1|a|pods||"],
    ["DELETE", "/api/v1/namespaces/a/pods/x", "delete||v1|a|pods|x|"],
    ["GET", "/api/v1/watch/namespaces/a/pods", "watch||v1|a|pods||"],
    ["GET", "/api/v1/watch/pods", "watch||v1||pods||"],
    ["GET", "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Dx", "list||v1|a|pods|x|"],
    ["GET", "/api/v1/namespaces/a/pods/x/proxy/a/b", "get||v1|a|pods|x|proxy/a/b"],
    ["GET", "/api/v1/namespaces/a%62/pods/", "list||v1|ab|pods||"],
    ["GET", "/apis/apps/v1", "get /apis/apps/v1"],
    ["GET", "/api/v1", "get /api/v1"],
    ["GET", "/", "get /"],
    ["GET", "/openapi/v3?x=1", "get /openapi/v3"],
    ["OPTIONS", "/version", "options /version"],
    ["GET", "/api/v1/pods?watch=0&watch=1", "list||v1||pods||"],
    ["GET", "/api/v1/pods?w%61tch=1", "watch||v1||pods||"],
    ["GET", "/api/v1/pods?=&&watch", "watch||v1||pods||"],
    ["GET", "/api/v1/pods?fieldSelector=metadata.name%3Da%3Bb", "list||v1||pods|a;b|"],
  ])("reads %s %s", (method, target, expected) => {
    expect(read(method, target)).toBe(expected);
  });

  it.each([
    ["an absolute target that names another server", "http://other/api/v1/pods"],
    ["an escaped slash that would shift the segments", "/api/v1/namespaces/a%2Fpods"],
    ["a parent segment", "/api/v1/namespaces/a/../b/pods"],
    ["an escaped parent segment", "/api/v1/namespaces/%2e%2e/pods"],
    ["a double slash", "/api/v1//pods"],
    ["a malformed escape in the path", "/api/v1/%zz/pods"],
    ["a malformed escape in the query", "/api/v1/pods?watch=%zz"],
    ["a second question mark, which URLSearchParams drops and Go keeps", "/api/v1/pods??watch=0&watch=1"],
    ["a semicolon, which makes Go drop the whole pair", "/api/v1/pods?watch=0;&watch=1"],
    ["a semicolon in the selector of a lock", "/api/v1/pods?fieldSelector=metadata.name%3Dx,y%3D;"],
    ["bytes outside ASCII", "/api/v1/pods?watch=fal\u00c5\u00bfe"],
    ["a watch value that is false only to readers that fold the long s", "/api/v1/pods?watch=fal%C5%BFe"],
    ["the legacy proxy prefix", "/api/v1/proxy/nodes/n"],
  ])("refuses %s", (_, target) => {
    expect(() => parseRequestInfo("GET", target)).toThrow(expect.objectContaining({ code: "BAD_REQUEST_TARGET" }));
  });

  it.each([
    ["OPTIONS", "/api/v1/namespaces/b/services/x/proxy/"],
    ["OPTIONS", "/api/v1/nodes/n/proxy/pods"],
    ["PROPFIND", "/apis/apps/v1/deployments"],
    ["TRACE", "/version"],
    ["get", "/api/v1/pods"],
  ])("refuses the method of %s %s, for which no decision exists", (method, target) => {
    expect(() => parseRequestInfo(method, target)).toThrow(
      expect.objectContaining({ status: expect.objectContaining({ code: 405, reason: "MethodNotAllowed" }) }),
    );
  });
});
