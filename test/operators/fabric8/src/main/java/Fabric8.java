import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.time.Duration;
import java.util.UUID;

/**
 * An operator on fabric8, the Java client: informers of Foos and ConfigMaps, a Lease, and while it leads a ConfigMap for each Foo. It
 * knows nothing of a mesh. ../README.md describes its output.
 */
public final class Fabric8 {
  private static final String POD_NAME = System.getenv("POD_NAME");
  private static final String LOCK_NAME = System.getenv("LOCK_NAME");
  private static volatile boolean leads = false;

  public static void main(String[] args) throws InterruptedException {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      client.configMaps().inAnyNamespace().inform(new Reporter<ConfigMap>("configmaps"));
      SharedIndexInformer<GenericKubernetesResource> foos =
          client.genericKubernetesResources("demo.ctrlmesh.io/v1", "Foo").inAnyNamespace().inform(new Reporter<>("foos"));
      Thread election = new Thread(() -> compete(client));
      election.setDaemon(true);
      election.start();
      while (true) {
        if (leads) foos.getStore().list().forEach(foo -> write(client, foo));
        Thread.sleep(200);
      }
    }
  }

  // Most operators exit when they lose the lease. This one competes again, since the tests restart its lower layers.
  private static void compete(KubernetesClient client) {
    String identity = POD_NAME + "_" + UUID.randomUUID();
    while (true) {
      client
          .leaderElector()
          .withConfig(
              new LeaderElectionConfigBuilder()
                  .withName(LOCK_NAME)
                  .withLock(new LeaseLock(System.getenv("POD_NAMESPACE"), LOCK_NAME, identity))
                  .withLeaseDuration(Duration.ofSeconds(4))
                  .withRenewDeadline(Duration.ofSeconds(3))
                  .withRetryPeriod(Duration.ofMillis(500))
                  .withReleaseOnCancel(true)
                  .withLeaderCallbacks(new LeaderCallbacks(() -> lead(true), () -> lead(false), leader -> {}))
                  .build())
          .build()
          .run();
    }
  }

  private static void lead(boolean isLeader) {
    leads = isLeader;
    say("{\"leading\":%b}", isLeader);
  }

  private static void write(KubernetesClient client, HasMetadata foo) {
    String namespace = foo.getMetadata().getNamespace();
    String name = foo.getMetadata().getName() + "-by-" + LOCK_NAME;
    try {
      ConfigMap current = client.configMaps().inNamespace(namespace).withName(name).get();
      if (current != null && POD_NAME.equals(current.getData().get("by"))) return;
      ConfigMap wanted =
          new ConfigMapBuilder().withNewMetadata().withName(name).endMetadata().addToData("by", POD_NAME).build();
      client.configMaps().inNamespace(namespace).resource(wanted).createOr(existing -> existing.update());
    } catch (RuntimeException error) {
      System.err.println("writing " + namespace + "/" + name + ": " + error.getMessage());
    }
  }

  private static synchronized void say(String format, Object... values) {
    System.out.println(String.format(format, values));
    System.out.flush();
  }

  /** Prints every event of an informer. */
  private record Reporter<T extends HasMetadata>(String resource) implements ResourceEventHandler<T> {
    private void tell(String type, T object) {
      String key = object.getMetadata().getNamespace() + "/" + object.getMetadata().getName();
      say("{\"resource\":\"%s\",\"type\":\"%s\",\"key\":\"%s\"}", resource, type, key);
    }

    @Override
    public void onAdd(T object) {
      tell("ADDED", object);
    }

    @Override
    public void onUpdate(T before, T object) {
      tell("MODIFIED", object);
    }

    @Override
    public void onDelete(T object, boolean isFinalStateUnknown) {
      tell("DELETED", object);
    }
  }
}
