package io.ctrlmesh.josdk;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.javaoperatorsdk.operator.api.config.informer.InformerEventSourceConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.processing.event.ResourceID;
import io.javaoperatorsdk.operator.processing.event.source.informer.InformerEventSource;
import java.util.Set;

/** The ConfigMaps of all namespaces. It prints each event, and one about a Foo's ConfigMap reconciles the Foo. */
final class PrintedConfigMaps extends InformerEventSource<ConfigMap, Foo> {
  PrintedConfigMaps(EventSourceContext<Foo> context, String suffix) {
    super(
        InformerEventSourceConfiguration.from(ConfigMap.class, Foo.class)
            .withSecondaryToPrimaryMapper(configMap -> fooOf(configMap, suffix))
            .build(),
        context);
  }

  @Override
  public void onAdd(ConfigMap configMap) {
    Line.Event.of("configmaps", "ADDED", configMap).print();
    super.onAdd(configMap);
  }

  @Override
  public void onUpdate(ConfigMap before, ConfigMap configMap) {
    Line.Event.of("configmaps", "MODIFIED", configMap).print();
    super.onUpdate(before, configMap);
  }

  @Override
  public void onDelete(ConfigMap configMap, boolean isFinalStateUnknown) {
    Line.Event.of("configmaps", "DELETED", configMap).print();
    super.onDelete(configMap, isFinalStateUnknown);
  }

  private static Set<ResourceID> fooOf(ConfigMap configMap, String suffix) {
    var name = configMap.getMetadata().getName();
    if (!name.endsWith(suffix)) return Set.of();
    var foo = name.substring(0, name.length() - suffix.length());
    return Set.of(new ResourceID(foo, configMap.getMetadata().getNamespace()));
  }
}
