package io.ctrlmesh.fabric8;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Plural;
import io.fabric8.kubernetes.model.annotation.Version;

/** The kind Foo of test/operators/go-foo/crd.yaml. The program does not read the spec. */
@Group("demo.ctrlmesh.io")
@Version("v1")
@Plural("foos") // by default fooes
public final class Foo extends CustomResource<Void, FooStatus> implements Namespaced {}
