import { expect, it } from "vitest";
import { userOf } from "./user-of.ts";

const OPERATOR = "system:serviceaccount:shop:operator";
const token = (claims: unknown) => `Bearer head.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.signature`;

it("is the subject of the token", () => {
  expect(userOf({ authorization: token({ sub: OPERATOR }) })).toBe(OPERATOR);
});

it("is the impersonated user, if there is one", () => {
  expect(userOf({ authorization: token({ sub: OPERATOR }), "impersonate-user": "alice" })).toBe("alice");
});

it.each([
  ["no header", undefined],
  ["no token", "Basic abc"],
  ["an opaque token", "Bearer abc"],
  ["no JSON", "Bearer a.!!!.b"],
  ["no subject", token({ iss: "x" })],
  ["a subject that is no text", token({ sub: { x: 1 } })],
])("is nobody for %s", (_, authorization) => {
  expect(userOf(authorization === undefined ? {} : { authorization })).toBe("");
});

it("is nobody for a WebSocket with a token of its own, which the API server may take instead", () => {
  const protocol = "v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.dG9rZW4";
  expect(userOf({ authorization: token({ sub: OPERATOR }), "sec-websocket-protocol": protocol })).toBe("");
});
