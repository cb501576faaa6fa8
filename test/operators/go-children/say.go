package main

import (
	"encoding/json"
	"os"
	"sync"
)

// line is one line of the output for the test.
type line struct {
	// Foo is the parent, as namespace/name.
	Foo string `json:"foo"`
	// Kind is that of the child; empty if the line is about the whole Foo.
	Kind string `json:"kind,omitempty"`
	// Step is begun, created or reconciled. A reconcile that has begun ends with reconciled or an error.
	Step  string `json:"step,omitempty"`
	Error string `json:"error,omitempty"`
	// Code is the HTTP code of the error, 0 without one.
	Code int32 `json:"code,omitempty"`
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
