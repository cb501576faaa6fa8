package io.ctrlmesh.josdk;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientException;

/** The ConfigMaps that the program writes. */
final class ConfigMaps {
  private ConfigMaps() {}

  static ConfigMap of(String namespace, String name, String podName) {
    return new ConfigMapBuilder()
        .withNewMetadata().withNamespace(namespace).withName(name).endMetadata()
        .addToData("by", podName)
        .build();
  }

  /** Writes once into the namespace, and prints the answer. */
  static void writeElsewhere(KubernetesClient client, String namespace, String lockName, String podName) {
    try {
      client.resource(of(namespace, "elsewhere-by-" + lockName, podName)).forceConflicts().serverSideApply();
      new Line.Answer(namespace, 200, null).print();
    } catch (KubernetesClientException error) {
      new Line.Answer(namespace, error.getCode(), error.getMessage()).print();
    }
  }
}
