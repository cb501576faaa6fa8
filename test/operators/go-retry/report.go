package main

import (
	"encoding/json"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
)

// line is one line of the output for the test.
type line struct {
	Resource string `json:"resource,omitempty"`
	Type     string `json:"type,omitempty"`
	Key      string `json:"key,omitempty"`
	// Version is the object's.
	Version string `json:"version,omitempty"`
	// From is the version of the object from which the program watches.
	From string `json:"from,omitempty"`
	// Error is why the program ends.
	Error string `json:"error,omitempty"`
}

var (
	mu  sync.Mutex
	out = json.NewEncoder(os.Stdout)
)

func say(l line) {
	mu.Lock()
	defer mu.Unlock()
	_ = out.Encode(l)
}

// reportInformer prints every event of an informer.
func reportInformer(informer cache.SharedIndexInformer, resource string) error {
	one := func(kind string, object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			return
		}
		said := line{Resource: resource, Type: kind, Key: key}
		if accessor, err := meta.Accessor(object); err == nil {
			said.Version = accessor.GetResourceVersion()
		}
		say(said)
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { one("ADDED", object) },
		UpdateFunc: func(_, object any) { one("MODIFIED", object) },
		DeleteFunc: func(object any) { one("DELETED", object) },
	})
	return err
}
