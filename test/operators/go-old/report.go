package main

import (
	"encoding/json"
	"os"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// line is one line of the output for the test.
type line struct {
	Resource string `json:"resource,omitempty"`
	Type     string `json:"type,omitempty"`
	Key      string `json:"key,omitempty"`
	Leading  *bool  `json:"leading,omitempty"`
}

var (
	yes, no = true, false
	mu      sync.Mutex
	out     = json.NewEncoder(os.Stdout)
)

func say(l line) {
	mu.Lock()
	defer mu.Unlock()
	_ = out.Encode(l)
}

// report prints every event of an informer.
func report(informer cache.SharedIndexInformer, resource string) {
	one := func(kind string, object interface{}) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err == nil {
			say(line{Resource: resource, Type: kind, Key: key})
		}
	}
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object interface{}) { one("ADDED", object) },
		UpdateFunc: func(_, object interface{}) { one("MODIFIED", object) },
		DeleteFunc: func(object interface{}) { one("DELETED", object) },
	})
}
