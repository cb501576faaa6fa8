// Package v1beta1 is version v1beta1 of the kind Gadget, as in crd.yaml. The message has another name there.
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	demov1 "ctrlmesh.io/test/operators/go-webhooks/api/v1"
)

// GroupVersion is the group and version of these types.
var GroupVersion = schema.GroupVersion{Group: "demo.ctrlmesh.io", Version: "v1beta1"}

// AddToScheme registers the types with a client's scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Gadget{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Gadget has a text.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GadgetSpec `json:"spec,omitempty"`
}

// GadgetSpec is the text.
type GadgetSpec struct {
	Text string `json:"text,omitempty"`
}

var _ conversion.Convertible = &Gadget{}

// ConvertTo implements conversion.Convertible.
func (g *Gadget) ConvertTo(hub conversion.Hub) error {
	to := hub.(*demov1.Gadget)
	to.ObjectMeta = g.ObjectMeta
	to.Spec.Message = g.Spec.Text
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (g *Gadget) ConvertFrom(hub conversion.Hub) error {
	from := hub.(*demov1.Gadget)
	g.ObjectMeta = from.ObjectMeta
	g.Spec.Text = from.Spec.Message
	return nil
}

// DeepCopyObject implements runtime.Object. Spec holds no references, so an assignment copies it.
func (g *Gadget) DeepCopyObject() runtime.Object {
	out := &Gadget{TypeMeta: g.TypeMeta, Spec: g.Spec}
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}
