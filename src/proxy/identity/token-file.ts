// The pod's service account token, by which the manager knows the proxy. Invariants: the token is read for each call, since the kubelet
// rotates it; no error, log or variable keeps it. manager-access.ts uses it.
import { readFile } from "node:fs/promises";
import { isMissing } from "../../base/durable-file.ts";
import { errorMessage, MeshError } from "../../base/errors.ts";

/** Tokens of the API server have about 1 KB; gRPC's servers take 8 KB of headers or more. */
const MAX_TOKEN_CHARS = 16 * 1024;

/** @throws MeshError `TOKEN_UNREADABLE` that names the file */
export async function readToken(file: string): Promise<string> {
  const token = (await readText(file)).trim();
  if (token === "") throw unreadable(file, "it is empty");
  // gRPC would refuse such a header with the token in its error.
  if (token.length > MAX_TOKEN_CHARS || !/^[\x21-\x7e]+$/.test(token)) throw unreadable(file, "there is no token in it");
  return token;
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw unreadable(file, isMissing(error) ? "there is no such file" : errorMessage(error));
  }
}

function unreadable(file: string, why: string): MeshError {
  return new MeshError("TOKEN_UNREADABLE", `reading this pod's token from ${file}: ${why}`);
}
