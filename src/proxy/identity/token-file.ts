// The pod's service account token, with which the proxy says who it is. Invariants: read anew for each call, since the kubelet rotates
// it; it is in no error and no log, and kept nowhere. Used by manager-access.
import { readFile } from "node:fs/promises";
import { isMissing } from "../../base/durable-file.ts";
import { errorMessage, MeshError } from "../../base/errors.ts";

/** Tokens of the API server have about 1 KB; gRPC's servers take 8 KB of headers or more. */
const MAX_TOKEN_CHARS = 16 * 1024;

/** @throws MeshError `TOKEN_UNREADABLE` that names the file */
export async function readToken(file: string): Promise<string> {
  const token = (await readText(file)).trim();
  if (token === "") throw unreadable(file, "it is empty");
  // What gRPC would refuse as a header, it would refuse with the token in its error.
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
