package io.ctrlmesh.fabric8;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.Optional;

/** An operator on the fabric8 client: two informers, writes for each Foo, and a Lease. It knows nothing of a mesh. */
public final class Main {
  private Main() {}

  public static void main(String[] args) {
    var podName = System.getenv("POD_NAME");
    var lockName = System.getenv("LOCK_NAME");
    var client = new KubernetesClientBuilder().build();
    var writer = new Writer(client, podName, lockName);
    Optional.ofNullable(System.getenv("ALSO_WRITE_TO")).ifPresent(writer::writeElsewhere);
    var foos = printedInformer(client, Foo.class, "foos");
    var configMaps = printedInformer(client, ConfigMap.class, "configmaps");
    var controller = new FooController(foos, writer);
    foos.addEventHandler(controller);
    foos.start();
    configMaps.start();
    new Election(client, controller, new LeaseLock(System.getenv("POD_NAMESPACE"), lockName, podName)).compete();
  }

  /** An informer of all namespaces that has not started. It retries after every error, where the default retries after some. */
  private static <T extends HasMetadata> SharedIndexInformer<T> printedInformer(
      KubernetesClient client, Class<T> type, String resource) {
    return client.resources(type).inAnyNamespace().runnableInformer(0)
        .addEventHandler(new PrintedEvents<>(resource))
        .exceptionHandler((isStarted, error) -> true);
  }
}
