package main

import (
	"syscall"

	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
)

// askForDeathSignal makes the kernel send sig when the parent ends. main.go calls it on the main thread.
func askForDeathSignal(sig syscall.Signal) {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(sig), 0, 0, 0); err != nil {
		klog.ErrorS(err, "Asking for a signal at the end of the parent")
	}
}
