package io.ctrlmesh.josdk;

import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.config.LeaderElectionConfiguration;
import io.javaoperatorsdk.operator.api.config.LeaderElectionConfigurationBuilder;
import java.util.Optional;

/** An operator on the Java Operator SDK: a reconciler of Foos, events of ConfigMaps, and a Lease. It knows nothing of a mesh. */
public final class Main {
  private Main() {}

  public static void main(String[] args) {
    var podName = System.getenv("POD_NAME");
    var lockName = System.getenv("LOCK_NAME");
    var client = new KubernetesClientBuilder().build();
    Optional.ofNullable(System.getenv("ALSO_WRITE_TO"))
        .ifPresent(namespace -> ConfigMaps.writeElsewhere(client, namespace, lockName, podName));
    var operator = new Operator(settings ->
        settings.withKubernetesClient(client).withLeaderElectionConfiguration(election(lockName, podName)));
    operator.register(new FooReconciler(podName, lockName));
    operator.start();
  }

  /** The process ends when it loses the lead, which is the library's default. */
  private static LeaderElectionConfiguration election(String lockName, String podName) {
    return LeaderElectionConfigurationBuilder.aLeaderElectionConfiguration(lockName)
        .withLeaseNamespace(System.getenv("POD_NAMESPACE"))
        .withIdentity(podName)
        .withLeaderCallbacks(new LeaderCallbacks(() -> lead(true), () -> lead(false), holder -> {}))
        .build();
  }

  private static void lead(boolean leads) {
    new Line.Lead(leads).print();
  }
}
