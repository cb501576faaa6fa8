// An operator on kube-rs (Rust), two pods behind the proxies of two subsets.
import { KUBE_RS } from "../support/clients/catalog.ts";
import { clientSuite } from "../support/clients/client-suite.ts";
import { describeWithKubeAndBuild } from "../support/requirements.ts";
import { whyNoRust } from "../support/rust-build.ts";

const missing = await whyNoRust("test/operators/kube-rs");

describeWithKubeAndBuild(missing, "kube-rs in two subsets", () => clientSuite([KUBE_RS]));
