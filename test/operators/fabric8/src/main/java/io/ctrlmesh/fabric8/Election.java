package io.ctrlmesh.fabric8;

import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfig;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import java.time.Duration;

/** The leader election by a Lease. */
record Election(KubernetesClient client, FooController controller, LeaseLock lock) {
  /** Competes without end. An elector of the library ends when it loses the lead, and then the next one begins. */
  void compete() {
    while (true) client.leaderElector().withConfig(config()).build().run();
  }

  private LeaderElectionConfig config() {
    return new LeaderElectionConfigBuilder()
        .withName("fabric8")
        .withLock(lock)
        .withLeaseDuration(Duration.ofSeconds(5))
        .withRenewDeadline(Duration.ofSeconds(4))
        .withRetryPeriod(Duration.ofSeconds(1))
        .withLeaderCallbacks(new LeaderCallbacks(() -> controller.lead(true), () -> controller.lead(false), holder -> {}))
        .build();
  }
}
