package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// counters report to a test how much of a request reached this side.
type counters struct {
	exec, attach, portforward, logs atomic.Int64
	logBytes                        atomic.Int64
}

func (c *counters) of(kind string) *atomic.Int64 {
	return map[string]*atomic.Int64{"exec": &c.exec, "attach": &c.attach, "portforward": &c.portforward, "logs": &c.logs}[kind]
}

func (c *counters) counted(kind string, next http.HandlerFunc) http.HandlerFunc {
	open := c.of(kind)
	return func(w http.ResponseWriter, req *http.Request) {
		open.Add(1)
		defer open.Add(-1)
		next(w, req)
	}
}

func (c *counters) serve(w http.ResponseWriter, _ *http.Request) {
	_ = json.NewEncoder(w).Encode(map[string]int64{
		"exec": c.exec.Load(), "attach": c.attach.Load(), "portforward": c.portforward.Load(),
		"logs": c.logs.Load(), "logBytes": c.logBytes.Load(),
	})
}

const lineEvery = 50 * time.Millisecond

// serveLogs writes `limitBytes` bytes as fast as the client reads them. With follow it writes numbered lines until the client
// disconnects.
func (c *counters) serveLogs(w http.ResponseWriter, req *http.Request) {
	flush := http.NewResponseController(w).Flush
	if limit, err := strconv.ParseInt(req.FormValue("limitBytes"), 10, 64); err == nil {
		chunk := make([]byte, 64*1024)
		for i := range chunk {
			chunk[i] = "0123456789abcdef"[i%16]
		}
		for left := limit; left > 0; {
			n, err := w.Write(chunk[:min(left, int64(len(chunk)))])
			c.logBytes.Add(int64(n))
			if err != nil {
				return
			}
			left -= int64(n)
		}
		return
	}
	for line := 0; ; line++ {
		if _, err := fmt.Fprintf(w, "line %d of %s\n", line, req.PathValue("pod")); err != nil || flush() != nil {
			return
		}
		if req.FormValue("follow") != "true" {
			return
		}
		select {
		case <-req.Context().Done():
			return
		case <-time.After(lineEvery):
		}
	}
}
