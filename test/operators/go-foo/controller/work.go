package controller

import (
	"context"
	"runtime"
	"syscall"
	"time"
)

// rusageThread selects the calling thread in getrusage(2).
const rusageThread = 1

// Work is what each reconcile does after its writes, for measurements. The zero value is an ordinary operator's: nothing.
type Work struct {
	// CPU is processor time, also on a busy machine.
	CPU time.Duration
	// Wait models a call to another system.
	Wait time.Duration
	// Workers is the number of reconciles at a time; 0 is controller-runtime's default.
	Workers int
}

func (w Work) do(ctx context.Context) {
	if w.CPU > 0 {
		burn(w.CPU)
	}
	if w.Wait > 0 {
		select {
		case <-time.After(w.Wait):
		case <-ctx.Done():
		}
	}
}

func burn(cpu time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for end := threadCPU() + cpu; threadCPU() < end; {
	}
}

func threadCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
