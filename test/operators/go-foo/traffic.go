package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// traffic counts what the operator's clients exchange with the API server, without the leader election.
type traffic struct {
	requests prometheus.Counter
	received prometheus.Counter
	events   prometheus.Counter
}

// newTraffic registers the counters with the operator's metrics.
func newTraffic() traffic {
	counter := func(name, help string) prometheus.Counter {
		made := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		metrics.Registry.MustRegister(made)
		return made
	}
	return traffic{
		requests: counter("foo_requests_total", "Requests to the API server."),
		received: counter("foo_received_bytes_total", "Bytes received over the connections to the API server, as sent: encrypted, perhaps compressed."),
		events:   counter("foo_events_total", "Events of Foos and ConfigMaps after the initial lists."),
	}
}

// countIn makes clients that are built from config count.
func (t traffic) countIn(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			t.requests.Inc()
			return next.RoundTrip(request)
		})
	})
	// The times are client-go's own.
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return countedConn{conn, t.received}, nil
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

type countedConn struct {
	net.Conn
	received prometheus.Counter
}

func (c countedConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.received.Add(float64(n))
	return n, err
}
