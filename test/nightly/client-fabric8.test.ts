// An operator on fabric8 kubernetes-client (Java), two pods behind the proxies of two subsets.
import { JAVA_FABRIC8 } from "../support/clients/catalog.ts";
import { clientSuite } from "../support/clients/client-suite.ts";
import { whyNoJava } from "../support/java-build.ts";
import { describeWithKubeAndBuild } from "../support/requirements.ts";

const missing = await whyNoJava("test/operators/fabric8");

describeWithKubeAndBuild(missing, "fabric8 in two subsets", () => clientSuite([JAVA_FABRIC8]));
