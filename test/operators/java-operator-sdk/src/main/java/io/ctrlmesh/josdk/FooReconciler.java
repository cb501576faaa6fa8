package io.ctrlmesh.josdk;

import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.processing.event.source.EventSource;
import java.util.List;

/** Applies the ConfigMap of a Foo, and writes its status if another pod wrote it. It prints each Foo that it is called for. */
@ControllerConfiguration(triggerReconcilerOnAllEvents = true) // also for a Foo that was deleted
record FooReconciler(String podName, String lockName) implements Reconciler<Foo> {
  @Override
  public List<EventSource<?, Foo>> prepareEventSources(EventSourceContext<Foo> context) {
    return List.of(new PrintedConfigMaps(context, "-by-" + lockName));
  }

  @Override
  public UpdateControl<Foo> reconcile(Foo foo, Context<Foo> context) {
    var type = context.isPrimaryResourceDeleted() ? "DELETED" : "MODIFIED";
    Line.Event.of("foos", type, foo).print();
    if (context.isPrimaryResourceDeleted()) return UpdateControl.noUpdate();
    var metadata = foo.getMetadata();
    var configMap = ConfigMaps.of(metadata.getNamespace(), metadata.getName() + "-by-" + lockName, podName);
    context.resourceOperations().serverSideApply(configMap);
    var status = new FooStatus(podName);
    if (status.equals(foo.getStatus())) return UpdateControl.noUpdate();
    return UpdateControl.patchStatus(Foo.withStatus(metadata.getNamespace(), metadata.getName(), status));
  }
}
