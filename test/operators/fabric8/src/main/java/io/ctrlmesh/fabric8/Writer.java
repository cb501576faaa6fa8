package io.ctrlmesh.fabric8;

import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;

/** Makes the writes of the program, as the pod. */
record Writer(KubernetesClient client, String podName, String lockName) {
  /** Applies the ConfigMap of a Foo, and writes its status if another pod wrote it. */
  void writeFor(Foo foo) {
    var metadata = foo.getMetadata();
    applyConfigMap(metadata.getNamespace(), metadata.getName() + "-by-" + lockName);
    var status = new FooStatus(podName);
    if (status.equals(foo.getStatus())) return;
    client.resource(foo).editStatus(current -> {
      current.setStatus(status);
      return current;
    });
  }

  /** Writes once into the namespace, and prints the answer. */
  void writeElsewhere(String namespace) {
    try {
      applyConfigMap(namespace, "elsewhere-by-" + lockName);
      new Line.Answer(namespace, 200, null).print();
    } catch (KubernetesClientException error) {
      new Line.Answer(namespace, error.getCode(), error.getMessage()).print();
    }
  }

  private void applyConfigMap(String namespace, String name) {
    var configMap = new ConfigMapBuilder()
        .withNewMetadata().withNamespace(namespace).withName(name).endMetadata()
        .addToData("by", podName)
        .build();
    client.resource(configMap).forceConflicts().serverSideApply();
  }
}
