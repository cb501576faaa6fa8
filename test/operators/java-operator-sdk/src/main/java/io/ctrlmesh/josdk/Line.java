package io.ctrlmesh.josdk;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.fabric8.kubernetes.api.model.HasMetadata;
import io.fabric8.kubernetes.client.informers.cache.Cache;
import io.fabric8.kubernetes.client.utils.KubernetesSerialization;

/** A line of the program's output, which test/operators/README.md describes. */
sealed interface Line {
  KubernetesSerialization JSON = new KubernetesSerialization();

  record Event(String resource, String type, String key) implements Line {
    static Event of(String resource, String type, HasMetadata object) {
      return new Event(resource, type, Cache.metaNamespaceKeyFunc(object));
    }
  }

  record Lead(boolean leading) implements Line {}

  /** The answer to the write into another subset's namespace. It has no message if the write succeeded. */
  @JsonInclude(JsonInclude.Include.NON_NULL)
  record Answer(String wroteTo, int code, String message) implements Line {}

  default void print() {
    System.out.println(JSON.asJson(this));
  }
}
