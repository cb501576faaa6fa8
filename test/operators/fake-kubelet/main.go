// Command fake-kubelet is the target of exec, attach, port-forward and logs in the tests: an HTTPS server that kube-apiserver
// calls in place of a kubelet, with the streaming code of real container runtimes. Its "containers" are processes of this
// machine: exec runs the command, port-forward connects to 127.0.0.1. GET /stats returns the open streams.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// The kubelet's defaults, for which no test waits.
const (
	idleTimeout           = 4 * time.Hour
	streamCreationTimeout = 30 * time.Second
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	certificate, err := selfSigned()
	if err != nil {
		log.Fatal(err)
	}
	ready, err := json.Marshal(map[string]any{"port": listener.Addr().(*net.TCPAddr).Port, "pid": os.Getpid()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(ready))
	server := &http.Server{
		Handler: routes(),
		// SPDY and WebSocket upgrades need HTTP/1.1. An empty map turns HTTP/2 off.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig:    &tls.Config{Certificates: []tls.Certificate{certificate}},
	}
	log.Fatal(server.ServeTLS(listener, "", ""))
}

// The paths that kube-apiserver requests of a kubelet (k8s.io/kubernetes/pkg/registry/core/pod).
func routes() http.Handler {
	mux := http.NewServeMux()
	open := &counters{}
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", open.counted("exec", func(w http.ResponseWriter, req *http.Request) {
		options, err := remotecommand.NewOptions(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		remotecommand.ServeExec(w, req, processes{}, req.PathValue("pod"), "", req.PathValue("container"), req.URL.Query()["command"],
			options, idleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	}))
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", open.counted("attach", func(w http.ResponseWriter, req *http.Request) {
		options, err := remotecommand.NewOptions(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		remotecommand.ServeAttach(w, req, processes{}, req.PathValue("pod"), "", req.PathValue("container"),
			options, idleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
	}))
	mux.HandleFunc("/portForward/{namespace}/{pod}", open.counted("portforward", func(w http.ResponseWriter, req *http.Request) {
		options, err := portforward.NewV4Options(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		portforward.ServePortForward(w, req, localPorts{}, req.PathValue("pod"), "",
			options, idleTimeout, streamCreationTimeout, portforward.SupportedProtocols)
	}))
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", open.counted("logs", open.serveLogs))
	mux.HandleFunc("GET /stats", open.serve)
	return mux
}

// selfSigned creates the certificate of a kubelet without approval. Without a CA for kubelets, kube-apiserver accepts it.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
