package io.ctrlmesh.josdk;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Plural;
import io.fabric8.kubernetes.model.annotation.Version;

/** The kind Foo of test/operators/go-foo/crd.yaml. The program does not read the spec. */
@Group("demo.ctrlmesh.io")
@Version("v1")
@Plural("foos") // by default fooes
public final class Foo extends CustomResource<Void, FooStatus> implements Namespaced {
  /** A Foo with a status alone, as a patch of the status has it. */
  static Foo withStatus(String namespace, String name, FooStatus status) {
    var foo = new Foo();
    foo.setMetadata(new ObjectMetaBuilder().withNamespace(namespace).withName(name).build());
    foo.setStatus(status);
    return foo;
  }
}
