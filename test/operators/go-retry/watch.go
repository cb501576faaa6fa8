package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// objectFlags name an object and how it is watched.
type objectFlags struct {
	resource, namespace, name string
	everywhere                bool
	within                    time.Duration
}

// follow watches from a version and reports each event, until report returns true.
type follow func(ctx context.Context, client dynamic.ResourceInterface, version string, report func(watch.Event) (bool, error)) error

// watchObject creates or gets the object, watches from its version, and ends when it is deleted.
func watchObject(ctx context.Context, config *rest.Config, o objectFlags, follow follow) error {
	gvr, _ := schema.ParseResourceArg(o.resource)
	if gvr == nil {
		return fmt.Errorf("--resource=%s is not resource.version.group", o.resource)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	all := client.Resource(*gvr)
	place := func(namespace string) dynamic.ResourceInterface {
		if namespace == "" {
			return all
		}
		return all.Namespace(namespace)
	}
	mine := place(o.namespace)
	object, err := createOrGet(ctx, mine, *gvr, o.name)
	if err != nil {
		return err
	}
	version := object.GetResourceVersion()
	say(line{Resource: gvr.Resource, Key: key(object), From: version})
	report := func(event watch.Event) (bool, error) {
		if event.Type == watch.Error {
			return false, apierrors.FromObject(event.Object)
		}
		object, err := meta.Accessor(event.Object)
		if err != nil {
			return false, err
		}
		say(line{Resource: gvr.Resource, Type: string(event.Type), Key: key(object)})
		return event.Type == watch.Deleted && object.GetName() == o.name && object.GetNamespace() == o.namespace, nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.within)
	defer cancel()
	watched := mine
	if o.everywhere {
		watched = all
	}
	return follow(ctx, watched, version, report)
}

func createOrGet(ctx context.Context, client dynamic.ResourceInterface, gvr schema.GroupVersionResource, name string) (*unstructured.Unstructured, error) {
	kinds := map[string]string{"configmaps": "ConfigMap", "foos": "Foo", "clusterroles": "ClusterRole"}
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(gvr.GroupVersion().String())
	object.SetKind(kinds[gvr.Resource])
	object.SetName(name)
	created, err := client.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return client.Get(ctx, name, metav1.GetOptions{})
	}
	return created, err
}

// retry follows by RetryWatcher, which watches again from the last version when a watch ends.
func retry(ctx context.Context, client dynamic.ResourceInterface, version string, report func(watch.Event) (bool, error)) error {
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if done, err := report(event); done || err != nil {
			return err
		}
	}
	return errors.Join(errors.New("the RetryWatcher has ended"), ctx.Err())
}

// until follows one watch by UntilWithoutRetry, which fails when the watch ends.
func until(ctx context.Context, client dynamic.ResourceInterface, version string, report func(watch.Event) (bool, error)) error {
	watcher, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return err
	}
	_, err = watchtools.UntilWithoutRetry(ctx, watcher, report)
	return err
}

func key(object metav1.Object) string {
	return cache.MetaObjectToName(object).String()
}
