// Package v1 is version v1 of demo.ctrlmesh.io: the kind Foo, as in crd.yaml.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion names this package to the API server.
var GroupVersion = schema.GroupVersion{Group: "demo.ctrlmesh.io", Version: "v1"}

// AddToScheme makes the types known to a client.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Foo asks for a ConfigMap with a message.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FooSpec   `json:"spec,omitempty"`
	Status FooStatus `json:"status,omitempty"`
}

// FooSpec is what is asked for.
type FooSpec struct {
	Message string `json:"message,omitempty"`
}

// FooStatus is who did it.
type FooStatus struct {
	// ReconciledBy is the pod that last did the work.
	ReconciledBy string `json:"reconciledBy,omitempty"`
	// Count grows by one for each generation, and for each pod that takes the Foo over.
	Count int64 `json:"count,omitempty"`
	// ObservedGeneration is the generation that the work was last done for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// FooList is a list of Foos.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Foo `json:"items"`
}
