package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// child is one kind of children. Each Foo has one of each kind, with the Foo's name.
type child struct {
	kind string
	// blank is an object of the kind without contents.
	blank func() client.Object
	// fill gives the object the contents that the API server requires.
	fill func(client.Object)
}

// children are in the order of their creation. No kind needs a node.
var children = []child{
	{"ConfigMap", func() client.Object { return &corev1.ConfigMap{} }, func(client.Object) {}},
	{"Secret", func() client.Object { return &corev1.Secret{} }, func(client.Object) {}},
	{"ServiceAccount", func() client.Object { return &corev1.ServiceAccount{} }, func(client.Object) {}},
	{"Role", func() client.Object { return &rbacv1.Role{} }, func(client.Object) {}},
	{"Service", func() client.Object { return &corev1.Service{} }, func(object client.Object) {
		object.(*corev1.Service).Spec = corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: labelsOf(object)}
	}},
	{"NetworkPolicy", func() client.Object { return &networkingv1.NetworkPolicy{} }, func(object client.Object) {
		object.(*networkingv1.NetworkPolicy).Spec.PodSelector.MatchLabels = labelsOf(object)
	}},
	{"Deployment", func() client.Object { return &appsv1.Deployment{} }, func(object client.Object) {
		object.(*appsv1.Deployment).Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(object)}
		object.(*appsv1.Deployment).Spec.Template = podTemplate(object)
	}},
	{"StatefulSet", func() client.Object { return &appsv1.StatefulSet{} }, func(object client.Object) {
		object.(*appsv1.StatefulSet).Spec.Selector = &metav1.LabelSelector{MatchLabels: labelsOf(object)}
		object.(*appsv1.StatefulSet).Spec.Template = podTemplate(object)
	}},
}

func labelsOf(object client.Object) map[string]string {
	return map[string]string{"foo": object.GetName()}
}

func podTemplate(object client.Object) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(object)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.invalid/main"}}},
	}
}
