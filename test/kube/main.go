// Command kube is a whole Kubernetes control plane for tests in one process: etcd, kube-apiserver and, on request,
// kube-controller-manager and kube-scheduler. All are real and linked as libraries. Called by the test harness in TypeScript.
//
// stdout carries exactly one line, the JSON of Announcement, once the API server is ready. Every server binds to loopback. All
// lasting state is in --dir, so that clients see `kill -9` and a second run on the same folder as an outage of the API server,
// not as a new cluster.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"
)

// stopTimeout bounds a clean stop. The API server would wait up to a minute for open requests, which is too long for a test.
const stopTimeout = 2 * time.Second

// gcPercent trades memory for CPU if GOGC is not set: some hundred MB more, for a quarter less CPU. Several run at a time in the tests.
const gcPercent = 400

// Announcement is the one line on stdout: all that a test needs to reach and check the control plane.
type Announcement struct {
	Server     string `json:"server"`
	Kubeconfig string `json:"kubeconfig"`
	// CA is the path of the PEM file that verifies Server.
	CA string `json:"ca"`
	// Token is a bearer token of a user in system:masters.
	Token string `json:"token"`
	// AuditLog is the path of the audit log, empty without --audit.
	AuditLog string `json:"auditLog"`
	Pid      int    `json:"pid"`
	// StartupMs is the time from the start of the process to readiness, in milliseconds.
	StartupMs int64 `json:"startupMs"`
}

// The main goroutine stays on the main thread, since the death signal of watchParent belongs to the thread that requests it.
func init() { runtime.LockOSThread() }

func main() {
	started := time.Now()
	if len(os.Args) == 2 && os.Args[1] == "version" {
		_ = json.NewEncoder(os.Stdout).Encode(readVersions())
		return
	}
	opts, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "kube: %v\n", err)
		os.Exit(64)
	}
	if err := run(opts, started, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "kube: %v (log: %s)\n", err, filepath.Join(opts.dir, "kube.log"))
		os.Exit(1)
	}
}

func run(opts *options, started time.Time, announceTo io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	state, err := openState(opts)
	if err != nil {
		return err
	}
	if err := logTo(filepath.Join(opts.dir, "kube.log")); err != nil {
		return err
	}
	applyVersion()
	ctx, stop := untilStopped(opts)
	defer stop()

	etcd, err := startEtcd(filepath.Join(opts.dir, "etcd"), state.ports.Etcd)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	components := newGroup(ctx)
	components.add("etcd", etcd.wait)
	plane, err := configure(opts, state)
	if err != nil {
		return err
	}
	components.add("kube-apiserver", plane.runAPIServer)
	if err := waitForAPIServer(components.ctx, state); err != nil {
		return components.failure(err)
	}
	if opts.controllerManager {
		components.add("kube-controller-manager", plane.runControllerManager)
		if err := waitForControllers(components.ctx, state); err != nil {
			return components.failure(err)
		}
	}
	if opts.scheduler {
		components.add("kube-scheduler", plane.runScheduler)
	}
	if err := announce(announceTo, state, started); err != nil {
		return err
	}
	return components.wait(stopTimeout, etcd.close)
}

func announce(to io.Writer, state *state, started time.Time) error {
	return json.NewEncoder(to).Encode(Announcement{
		Server:     state.server(),
		Kubeconfig: state.kubeconfig(adminUser),
		CA:         state.pki.path("ca.crt"),
		Token:      state.token,
		AuditLog:   state.auditLog,
		Pid:        os.Getpid(),
		StartupMs:  time.Since(started).Milliseconds(),
	})
}
