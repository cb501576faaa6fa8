package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	foos       = schema.GroupVersionResource{Group: "demo.ctrlmesh.io", Version: "v1", Resource: "foos"}
)

// runInformers runs informers until the program is stopped. The informer number n reports its events as the resource "informer-n".
func runInformers(ctx context.Context, config *rest.Config, count int, namespace string) error {
	makers, err := informerMakers(config, namespace)
	if err != nil {
		return err
	}
	for n := range count {
		informer := makers[n%len(makers)]()
		if err := reportInformer(informer, fmt.Sprintf("informer-%d", n)); err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
	}
	<-ctx.Done()
	return nil
}

// informerMakers has one informer of each shape: typed in protobuf, dynamic in JSON, metadata only, in one namespace, by labels.
func informerMakers(config *rest.Config, namespace string) ([]func() cache.SharedIndexInformer, error) {
	inProtobuf := rest.CopyConfig(config)
	inProtobuf.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	inProtobuf.ContentType = "application/vnd.kubernetes.protobuf"
	typed, err := kubernetes.NewForConfig(inProtobuf)
	if err != nil {
		return nil, err
	}
	plain, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	partial, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	byLabels := func(options *metav1.ListOptions) { options.LabelSelector = "!absent" }
	return []func() cache.SharedIndexInformer{
		func() cache.SharedIndexInformer {
			return informers.NewSharedInformerFactory(typed, 0).Core().V1().ConfigMaps().Informer()
		},
		func() cache.SharedIndexInformer {
			return dynamicinformer.NewDynamicSharedInformerFactory(plain, 0).ForResource(foos).Informer()
		},
		func() cache.SharedIndexInformer {
			return metadatainformer.NewSharedInformerFactory(partial, 0).ForResource(configMaps).Informer()
		},
		func() cache.SharedIndexInformer {
			return dynamicinformer.NewFilteredDynamicSharedInformerFactory(plain, 0, namespace, nil).ForResource(configMaps).Informer()
		},
		func() cache.SharedIndexInformer {
			return dynamicinformer.NewFilteredDynamicSharedInformerFactory(plain, 0, "", byLabels).ForResource(foos).Informer()
		},
	}, nil
}
