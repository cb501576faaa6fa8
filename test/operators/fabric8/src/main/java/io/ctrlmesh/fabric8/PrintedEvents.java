package io.ctrlmesh.fabric8;

import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;

/** Prints each event of an informer. */
record PrintedEvents<T extends HasMetadata>(String resource) implements ResourceEventHandler<T> {
  @Override
  public void onAdd(T object) {
    Line.Event.of(resource, "ADDED", object).print();
  }

  @Override
  public void onUpdate(T before, T object) {
    Line.Event.of(resource, "MODIFIED", object).print();
  }

  @Override
  public void onDelete(T object, boolean isFinalStateUnknown) {
    Line.Event.of(resource, "DELETED", object).print();
  }
}
