package main

import (
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// logTo sends the logs of all components to one file and appends across restarts. It also redirects their stdout, which carries
// only the announcement. A crash still shows on stderr and in the file.
func logTo(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := debug.SetCrashOutput(file, debug.CrashOptions{}); err != nil {
		return err
	}
	klog.SetLoggerWithOptions(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(file))), klog.ContextualLogger(true))
	os.Stdout = file
	return nil
}
