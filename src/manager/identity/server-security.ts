// How the server of proxies proves itself and knows its callers. identity/add.ts makes it; the server of snapshots uses it.
import type { Certifier } from "./certifier.ts";
import type { Identify } from "./identify.ts";
import type { MeshIdentity } from "./mesh-identity.ts";
import type { Rejections } from "./rejections.ts";

export interface ServerSecurity {
  readonly identity: Pick<MeshIdentity, "serving" | "onChange">;
  readonly identify: Identify;
  readonly certify: Certifier;
  readonly rejections: Rejections;
}
