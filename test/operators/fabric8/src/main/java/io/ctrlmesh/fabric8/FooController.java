package io.ctrlmesh.fabric8;

import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.client.informers.cache.Cache;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Writes for each Foo while the pod leads, for one Foo at a time, and again after an error. */
final class FooController implements ResourceEventHandler<Foo> {
  private static final long RETRY_MS = 500;

  private final SharedIndexInformer<Foo> foos;
  private final Writer writer;
  private final ScheduledExecutorService worker = Executors.newSingleThreadScheduledExecutor();
  private volatile boolean isLeading;

  FooController(SharedIndexInformer<Foo> foos, Writer writer) {
    this.foos = foos;
    this.writer = writer;
  }

  void lead(boolean leads) {
    isLeading = leads;
    new Line.Lead(leads).print();
    if (leads) foos.getIndexer().listKeys().forEach(key -> worker.execute(() -> reconcile(key)));
  }

  @Override
  public void onAdd(Foo foo) {
    enqueue(foo);
  }

  @Override
  public void onUpdate(Foo before, Foo foo) {
    enqueue(foo);
  }

  @Override
  public void onDelete(Foo foo, boolean isFinalStateUnknown) {}

  private void enqueue(HasMetadata foo) {
    var key = Cache.metaNamespaceKeyFunc(foo);
    worker.execute(() -> reconcile(key));
  }

  private void reconcile(String key) {
    var foo = foos.getIndexer().getByKey(key);
    if (foo == null || !isLeading) return;
    try {
      writer.writeFor(foo);
    } catch (KubernetesClientException error) {
      System.err.printf("writing for %s: %s%n", key, error.getMessage());
      worker.schedule(() -> reconcile(key), RETRY_MS, TimeUnit.MILLISECONDS);
    }
  }
}
