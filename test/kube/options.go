package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// options are the flags of the command line, checked before any component starts.
type options struct {
	dir                   string
	port, etcdPort        int
	controllerManager     bool
	nodeControllers       bool
	scheduler             bool
	audit                 bool
	featureGates          string
	tokenCache            time.Duration
	apiServerArgs         []string
	controllerManagerArgs []string
	parentPid             int
	stdinLifetime         bool
}

func parseOptions(args []string) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("kube", flag.ContinueOnError)
	fs.StringVar(&o.dir, "dir", "", "folder of all state; a second run on it continues the same cluster (required)")
	fs.IntVar(&o.port, "port", 0, "port of the API server; 0 is that of the last run in --dir, or else a free one")
	fs.IntVar(&o.etcdPort, "etcd-port", 0, "port of etcd; 0 as for --port")
	fs.BoolVar(&o.controllerManager, "controller-manager", false, "run the built-in controllers")
	fs.BoolVar(&o.nodeControllers, "node-controllers", false, "also run the built-in controllers that mark silent nodes as lost and delete their pods")
	fs.BoolVar(&o.scheduler, "scheduler", false, "run the scheduler")
	fs.BoolVar(&o.audit, "audit", false, "write DIR/audit.log: one JSON line for each request that changes things; also how go-foo asks for its objects")
	fs.StringVar(&o.featureGates, "feature-gates", "", "A=true,B=false, for all components")
	fs.DurationVar(&o.tokenCache, "token-cache", 10*time.Second, "how long the API server accepts a token that it has found valid; kube-apiserver has no flag for it")
	fs.Func("apiserver-arg", "a flag of kube-apiserver, set after those set here; repeatable", appendTo(&o.apiServerArgs))
	fs.Func("controller-manager-arg", "the same for kube-controller-manager", appendTo(&o.controllerManagerArgs))
	fs.IntVar(&o.parentPid, "parent-pid", 0, "stop when this process is gone")
	fs.BoolVar(&o.stdinLifetime, "stdin-lifetime", false, "stop when stdin is closed")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	var problems []error
	if fs.NArg() > 0 {
		problems = append(problems, fmt.Errorf("unexpected argument %q", fs.Arg(0)))
	}
	if o.dir == "" {
		problems = append(problems, errors.New("--dir is required"))
	}
	for name, port := range map[string]int{"--port": o.port, "--etcd-port": o.etcdPort} {
		if port < 0 || port > 65535 {
			problems = append(problems, fmt.Errorf("%s: %d is not a port", name, port))
		}
	}
	if o.tokenCache <= 0 {
		problems = append(problems, fmt.Errorf("--token-cache: %v is not above 0", o.tokenCache))
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	// The components resolve paths at different times. One absolute path is the same for all.
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	o.dir = dir
	return o, os.MkdirAll(dir, 0o755)
}

func appendTo(list *[]string) func(string) error {
	return func(value string) error {
		*list = append(*list, value)
		return nil
	}
}
