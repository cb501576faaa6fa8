//go:build !linux

package main

import "syscall"

// askForDeathSignal does nothing: on other systems watchParent polls.
func askForDeathSignal(syscall.Signal) {}
