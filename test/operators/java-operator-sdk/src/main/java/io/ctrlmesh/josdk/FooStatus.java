package io.ctrlmesh.josdk;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;

/** The part of a Foo's status that the program reads and writes. */
@JsonIgnoreProperties(ignoreUnknown = true)
public record FooStatus(String reconciledBy) {}
