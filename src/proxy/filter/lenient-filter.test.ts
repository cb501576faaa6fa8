import { expect, it } from "vitest";
import { codecError } from "../../kube/codec/types.ts";
import { LenientFilter } from "./lenient-filter.ts";

const bytes = (text: string) => Buffer.from(text);

function through(fail: "never" | "at once" | "after a part" | "at the end", error: Error = codecError("CODEC_NOT_A_LIST", "no")) {
  const out: string[] = [];
  const filter = new LenientFilter({
    dropped: 0,
    kept: 0,
    push(_chunk, emit) {
      if (fail === "at once") throw error;
      if (fail === "never" || fail === "after a part") emit(bytes("<part>"));
      if (fail === "after a part") throw error;
    },
    end(emit) {
      if (fail === "at the end") throw error;
      emit(bytes("<end>"));
    },
  });
  const emit = (slice: Uint8Array) => void out.push(Buffer.from(slice).toString());
  const run = () => {
    for (const chunk of ["a", "b", "c"]) filter.push(bytes(chunk), emit);
    filter.end(emit);
    return out.join("");
  };
  return run;
}

it("writes what the filter writes", () => expect(through("never")()).toBe("<part><part><part><end>"));

it("passes a body of which the filter has written nothing when it fails", () => {
  expect(through("at once")()).toBe("abc");
  expect(through("at the end")()).toBe("abc");
});

it("breaks a body of which a part has gone, and by a fault that is not the body's", () => {
  expect(through("after a part")).toThrow("no");
  expect(through("at once", new TypeError("a fault"))).toThrow("a fault");
});
