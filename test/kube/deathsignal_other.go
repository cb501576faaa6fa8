//go:build !linux

package main

import "syscall"

// askForDeathSignal does nothing: elsewhere the poll of watchParent has to do.
func askForDeathSignal(syscall.Signal) {}
