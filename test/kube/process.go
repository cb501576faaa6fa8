package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// errStopped is the cause of a requested stop.
var errStopped = errors.New("stopped")

// parentPoll is the interval of checks for the parent on systems without a death signal.
const parentPoll = 500 * time.Millisecond

// untilStopped returns a context that ends at a signal, at the end of the parent or at the end of stdin. A killed test runner
// cannot clean up, and a leftover control plane would hold ports, memory and a core.
func untilStopped(opts *options) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := func(reason string) {
		klog.InfoS("Stopping", "reason", reason)
		cancel(errStopped)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		s := <-signals
		stop(s.String())
		// A second signal ends the process at once.
		<-signals
		os.Exit(1)
	}()
	if opts.parentPid > 0 {
		go watchParent(opts.parentPid, stop)
		askForDeathSignal(parentDied)
	}
	if opts.stdinLifetime {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop("stdin was closed")
		}()
	}
	return ctx, func() { cancel(errStopped) }
}

// watchParent stops the process when the parent pid is gone. The signal only triggers an earlier check: it comes at the end of
// the *thread* that started this process, which in Node may be a worker of a living parent.
func watchParent(pid int, stop func(string)) {
	hints := make(chan os.Signal, 1)
	signal.Notify(hints, parentDied)
	tick := time.NewTicker(parentPoll)
	defer tick.Stop()
	child := os.Getppid() == pid
	for {
		if child && os.Getppid() != pid || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			stop("the parent is gone")
			return
		}
		select {
		case <-hints:
		case <-tick.C:
		}
	}
}

// parentDied is a signal without any other use here.
const parentDied = syscall.SIGUSR1
