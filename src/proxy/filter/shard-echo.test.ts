import { describe, expect, it } from "vitest";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { readEcho, withHead } from "./shard-echo.ts";

// Heads as kube-apiserver 1.36 writes them.
const ECHO = `"shardInfo":{"selector":"shardRange(object.metadata.namespace, '0x089c4307b54596b7', '0x089c4307b54596b8')"}`;
const json = (text: string) => readEcho("json", Buffer.from(text));

describe("the head of a list", () => {
  it("of a built-in type says whether the selector was honoured", () => {
    const head = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"';
    expect(json(`${head},${ECHO}},"items":[]}`)).toBe("honoured");
    expect(json(`${head},"continue":"x",${ECHO.slice(0, 40)}`)).toBe("honoured");
    expect(json(`${head}},"items":[]}`)).toBe("ignored");
    expect(json('{\n  "kind": "PodList",\n  "metadata": {\n  },\n  "items": [')).toBe("ignored");
  });

  it("of custom resources, Tables and metadata alone says nothing", () => {
    expect(json('{"apiVersion":"x.io/v1","items":[{"metadata":{}}],"kind":"FooList","metadata":{}}')).toBe("unknown");
    for (const kind of ["Table", "PartialObjectMetadataList"])
      expect(json(`{"kind":"${kind}","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"items":[`)).toBe(
        "unknown",
      );
  });

  it("that is not all there says nothing", () => {
    expect(json('{"kind":"PodList","metadata":{"resourceVersion":"7"')).toBe("unknown");
  });

  it("is read in protobuf as well", () => {
    const protobuf = (text: string) => readEcho("protobuf", Buffer.from(text));
    expect(protobuf("k8s\0\n\x0f\n\x02v1\x12\x09PodList\x12\x00shardRange(object")).toBe("honoured");
    expect(protobuf("k8s\0\n\x0f\n\x02v1\x12\x09PodList\x12\x00")).toBe("ignored");
    expect(protobuf("k8s\0\n\x0f\n\x02v1\x12\x09PartialObjectMetadataList")).toBe("unknown");
  });

  it("is told once, whatever the chunks, and every byte passes", () => {
    const heads: string[] = [];
    const source = scriptedSource();
    const sink = recordingSink();
    withHead(source, 5, (head) => heads.push(Buffer.from(head).toString())).open(sink);
    for (const part of ["abc", "def", "ghi"]) source.write(part);
    source.end();
    expect([heads, sink.text, sink.state]).toEqual([["abcdef"], "abcdefghi", "ended"]);
    const short = scriptedSource();
    withHead(short, 5, (head) => heads.push(Buffer.from(head).toString())).open(recordingSink());
    short.write("x");
    short.end();
    expect(heads).toEqual(["abcdef", "x"]);
  });
});
