// The tables of requests that change something, or have an unusual form, for the tests that the proxy is invisible. Each step has
// the expected answer of the API server, so that two failures do not count as a success.

import type { RawRequest } from "./raw-client.ts";
import { get, PROTOBUF, patch, post, put, remove } from "./requests.ts";

export const CMS = "/api/v1/namespaces/wide/configmaps";
export const FOOS = "/apis/demo.ctrlmesh.io/v1/namespaces/wide/foos";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/wide/deployments";
const APPLY = "?fieldManager=differential&force=true";

/** A request that changes something. `n` returns a name for one side. */
export type Step = readonly [name: string, status: number, request: (n: (name: string) => string) => RawRequest];

export const configMap = (name: string, data: object = { a: "b" }, meta = "") =>
  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{${meta}"namespace":"wide","name":"${name}"},"data":${JSON.stringify(data)}}`;
const foo = (name: string) =>
  `{"apiVersion":"demo.ctrlmesh.io/v1","kind":"Foo","metadata":{"namespace":"wide","name":"${name}"},"spec":{"message":"m"}}`;
const eviction = (name: string) =>
  `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"namespace":"wide","name":"${name}"}}`;

const yaml = (name: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  applied: "yes"\n`;
const withNope = (body: string) => `{"nope":1,"nope2":2,${body.slice(1)}`;
const large = (bytes: number) => post(CMS, configMap("big", { x: "x".repeat(bytes) }));
const options = (more: string) => `{"kind":"DeleteOptions","apiVersion":"v1",${more}}`;

/** ConfigMaps and Foos: create, update, every patch, apply, delete, deletecollection, dry run. */
export const WRITES: readonly Step[] = [
  ["create", 201, (n) => post(CMS, configMap(n("w")))],
  ["create again", 409, (n) => post(CMS, configMap(n("w")))],
  ["create from YAML", 201, (n) => post(CMS, yaml(n("y")), "application/yaml")],
  ["create, dry run", 201, (n) => post(`${CMS}?dryRun=All`, configMap(n("dry")))],
  ["create in chunks", 201, (n) => ({ ...post(CMS, configMap(n("c"))), chunkBytes: 7 })],
  ["create after 100 Continue", 201, (n) => ({ ...post(CMS, configMap(n("e"))), expectContinue: true })],
  ["create of an invalid object", 422, () => post(CMS, configMap("Not_A_Name"))],
  ["create with a body that is not JSON", 400, () => post(CMS, "{")],
  ["create of nothing", 400, () => post(CMS, "")],
  ["create with unknown fields, strictly", 400, (n) => post(`${CMS}?fieldValidation=Strict`, withNope(configMap(n("f"))))],
  ["create with unknown fields, warned", 201, (n) => post(`${CMS}?fieldValidation=Warn`, withNope(configMap(n("f"))))],
  ["create in no namespace", 404, (n) => post("/api/v1/namespaces/none/configmaps", configMap(n("w")).replace("wide", "none"))],
  ["create of 3 MB", 422, () => large(3_000_000)],
  ["create of 3 MB in chunks", 422, () => ({ ...large(3_000_000), chunkBytes: 10_000 })],
  ["create of too much", 413, () => large(4_000_000)],
  ["create of far too much in chunks", 413, () => ({ ...large(20_000_000), chunkBytes: 50_000 })],
  ["update", 200, (n) => put(`${CMS}/${n("w")}`, configMap(n("w"), { b: "c" }))],
  ["update that creates", 404, (n) => put(`${CMS}/${n("p")}`, configMap(n("p")))],
  ["update by a wrong name", 400, (n) => put(`${CMS}/${n("w")}`, configMap("x"))],
  ["update of an old version", 409, (n) => put(`${CMS}/${n("w")}`, configMap(n("w"), {}, '"resourceVersion":"1",'))],
  ["JSON patch", 200, (n) => patch(`${CMS}/${n("w")}`, "json-patch+json", '[{"op":"add","path":"/data/j","value":"1"}]')],
  ["JSON patch that fails", 422, (n) => patch(`${CMS}/${n("w")}`, "json-patch+json", '[{"op":"remove","path":"/nope"}]')],
  ["merge patch", 200, (n) => patch(`${CMS}/${n("w")}`, "merge-patch+json", '{"data":{"m":"1"}}')],
  ["strategic merge patch", 200, (n) => patch(`${CMS}/${n("w")}`, "strategic-merge-patch+json", '{"data":{"s":"1"}}')],
  ["apply from YAML", 200, (n) => patch(`${CMS}/${n("w")}${APPLY}`, "apply-patch+yaml", yaml(n("w")))],
  ["apply from JSON", 200, (n) => patch(`${CMS}/${n("w")}${APPLY}`, "apply-patch+yaml", configMap(n("w")))],
  ["apply that creates", 201, (n) => patch(`${CMS}/${n("new")}${APPLY}`, "apply-patch+yaml", yaml(n("new")))],
  [
    "apply that conflicts",
    409,
    (n) => patch(`${CMS}/${n("w")}?fieldManager=other`, "apply-patch+yaml", configMap(n("w"), { a: "z" })),
  ],
  ["apply without a manager", 422, (n) => patch(`${CMS}/${n("w")}`, "apply-patch+yaml", yaml(n("w")))],
  ["patch of a strange type", 415, (n) => patch(`${CMS}/${n("w")}`, "nonsense", "{}")],
  ["delete of none", 404, (n) => remove(`${CMS}/${n("none")}`)],
  ["delete, dry run", 200, (n) => remove(`${CMS}/${n("w")}?dryRun=All`)],
  ["delete of another", 409, (n) => remove(`${CMS}/${n("w")}`, options('"preconditions":{"uid":"x"}'))],
  ["delete with options", 200, (n) => remove(`${CMS}/${n("w")}`, options('"propagationPolicy":"Foreground"'))],
  ["delete again, which waits for a finalizer", 200, (n) => remove(`${CMS}/${n("w")}`)],
  ["delete at once", 200, (n) => remove(`${CMS}/${n("y")}`, options('"gracePeriodSeconds":0'))],
  ["deletecollection", 200, (n) => remove(`${CMS}?fieldSelector=metadata.name%3D${n("c")}`)],
  [
    "deletecollection with options",
    200,
    (n) => remove(`${CMS}?fieldSelector=metadata.name%3D${n("e")}`, options('"dryRun":["All"]')),
  ],
  ["deletecollection of nothing", 200, () => remove(`${CMS}?labelSelector=no-such`)],
  ["create a custom resource", 201, (n) => post(FOOS, foo(n("f")))],
  [
    "status of a custom resource",
    200,
    (n) => patch(`${FOOS}/${n("f")}/status`, "merge-patch+json", '{"status":{"count":9007199254740993}}'),
  ],
  ["strategic merge of a custom resource", 415, (n) => patch(`${FOOS}/${n("f")}`, "strategic-merge-patch+json", "{}")],
  ["apply a custom resource", 200, (n) => patch(`${FOOS}/${n("f")}${APPLY}`, "apply-patch+yaml", foo(n("f")))],
];

const idle = "/api/v1/namespaces/wide/pods/idle";
const debug = '{"spec":{"ephemeralContainers":[{"name":"debug","image":"x"}]}}';
const binding = '{"kind":"Binding","apiVersion":"v1","metadata":{"name":"idle"},"target":{"kind":"Node","name":"n"}}';
const mayI =
  '{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}';

/** The steps on the objects of WORKLOADS. */
export const SUBRESOURCES: readonly Step[] = [
  ["scale", 200, () => get(`${DEPLOYMENTS}/dep/scale`)],
  ["scale as protobuf", 200, () => get(`${DEPLOYMENTS}/dep/scale`, PROTOBUF)],
  ["patch of scale", 200, () => patch(`${DEPLOYMENTS}/dep/scale?dryRun=All`, "merge-patch+json", '{"spec":{"replicas":3}}')],
  ["status", 200, () => get(`${DEPLOYMENTS}/dep/status`)],
  ["patch of status", 200, () => patch(`${DEPLOYMENTS}/dep/status?dryRun=All`, "merge-patch+json", '{"status":{"replicas":1}}')],
  ["eviction", 201, () => post(`${idle}/eviction?dryRun=All`, eviction("idle"))],
  ["eviction of none", 404, () => post("/api/v1/namespaces/wide/pods/none/eviction", eviction("none"))],
  ["ephemeral containers", 200, () => get(`${idle}/ephemeralcontainers`)],
  [
    "patch of ephemeral containers",
    200,
    () => patch(`${idle}/ephemeralcontainers?dryRun=All`, "strategic-merge-patch+json", debug),
  ],
  ["log of a pod without a node", 204, () => get(`${idle}/log`)],
  ["log that is followed of a pod without a node", 204, () => get(`${idle}/log?follow=true`)],
  ["log of a container that is none", 400, () => get(`${idle}/log?container=none`)],
  ["exec into a pod without a node", 400, () => get(`${idle}/exec?command=ls&stdout=1`)],
  ["exec by POST into a pod without a node", 400, () => post(`${idle}/exec?command=ls&stdout=1`, "")],
  ["port-forward to a pod without a node", 400, () => get(`${idle}/portforward?ports=80`)],
  ["proxy to a pod without an address", 400, () => get(`${idle}/proxy/a/b?c=d`)],
  ["binding", 201, () => post(`${idle}/binding?dryRun=All`, binding)],
  ["proxy to a service without endpoints", 404, () => get("/api/v1/namespaces/wide/services/http:svc:80/proxy/a/b?c=d")],
  ["access review", 201, () => post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", mayI)],
  [
    "who am I",
    201,
    () =>
      post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        '{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"}',
      ),
  ],
];

/** Requests that Go and Node read differently, or where the segments of the request info and of the router differ. */
export const REFUSED_BUT_SERVED = [
  `${CMS}//`,
  `${CMS}%2Fcm-a`,
  `${CMS}?labelSelector=cm-a;limit=1`,
  `${CMS}?labelSelector=%zz`,
  `${CMS}??watch=1`,
  `${CMS}?watch=fal%C5%BFe`,
  "http://127.0.0.1/version",
];

export const ODD_TARGETS = [
  "//api/v1/namespaces/wide/configmaps",
  "/api//v1/namespaces/wide/configmaps",
  "/api/v1/namespaces//wide/configmaps",
  `${CMS}//cm-a`,
  `${CMS}//`,
  `${CMS}/./cm-a`,
  `${CMS}/../configmaps/cm-a`,
  `${CMS}/%2e%2e/configmaps`,
  `${CMS}%2Fcm-a`,
  `${CMS}/a%2Fb`,
  `${CMS}/a%5Cb`,
  `${CMS}/a\\b`,
  `${CMS}/a%00b`,
  `${CMS}/a%zz`,
  `${CMS}/caf\u00e9`,
  `${CMS}/a|b`,
  `${CMS}?labelSelector=cm-a;limit=1`,
  `${CMS}?labelSelector=%zz`,
  `${CMS}?labelSelector=caf\u00e9`,
  `${CMS}??watch=1`,
  `${CMS}?watch=fal%C5%BFe`,
  `${CMS}?watch=nonsense&timeoutSeconds=1`,
  `${CMS}#fragment`,
  "/api/v1/namespaces/wide/services/svc/proxy/",
  "/api/v1/namespaces/wide/services/svc/proxy//",
  "/api/v1/namespaces/wide/services/svc/proxy/a//b",
  "/api/v1/namespaces/wide/services/svc/proxy/a/",
  "/api/v1/namespaces/wide/services/svc/proxy/a%2Fb",
  "/api/v1/namespaces/wide/services/svc/proxy/../x",
  "/api/v1/namespaces/wide/services/svc/proxy/a?b=c;d",
  "/api/v1/proxy/namespaces/wide/services/svc",
  "/api/v1/watch",
  "/api/v1/watch/",
  "/api/v1/namespaces/",
  "/apis//v1",
  "/healthz/../version",
  "//version",
  "/openapi/v2?timeout=32s",
  "/api?timeout=32s",
  "*",
  "http://127.0.0.1/version",
];
