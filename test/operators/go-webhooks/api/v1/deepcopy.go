package v1

import "k8s.io/apimachinery/pkg/runtime"

// DeepCopyInto copies g into out. Spec holds no references, so an assignment copies it.
func (g *Gadget) DeepCopyInto(out *Gadget) {
	*out = *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

// DeepCopy returns a copy that shares nothing with g.
func (g *Gadget) DeepCopy() *Gadget {
	out := new(Gadget)
	g.DeepCopyInto(out)
	return out
}

// DeepCopyObject implements runtime.Object.
func (g *Gadget) DeepCopyObject() runtime.Object { return g.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *GadgetList) DeepCopyObject() runtime.Object {
	out := &GadgetList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
