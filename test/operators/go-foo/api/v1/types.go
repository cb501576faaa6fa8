// Package v1 is version v1 of demo.ctrlmesh.io: the kind Foo, as in crd.yaml.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of these types.
var GroupVersion = schema.GroupVersion{Group: "demo.ctrlmesh.io", Version: "v1"}

// AddToScheme registers the types with a client's scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Foo requests a ConfigMap with a message.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FooSpec   `json:"spec,omitempty"`
	Status FooStatus `json:"status,omitempty"`
}

// FooSpec is the desired message.
type FooSpec struct {
	Message string `json:"message,omitempty"`
}

// FooStatus is the last reconciliation.
type FooStatus struct {
	// ReconciledBy is the pod that last reconciled it.
	ReconciledBy string `json:"reconciledBy,omitempty"`
	// Count grows by one for each generation, and for each pod that takes over the Foo.
	Count int64 `json:"count,omitempty"`
	// ObservedGeneration is the last reconciled generation.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// FooList is a list of Foos.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Foo `json:"items"`
}
