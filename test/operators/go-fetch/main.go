// go-fetch sends one GET with Go's net/http through a forward proxy, and prints the status and the body, or the error, as a JSON line.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"
)

type result struct {
	Status int    `json:"status,omitempty"`
	Body   string `json:"body,omitempty"`
	Error  string `json:"error,omitempty"`
}

func main() {
	proxy := flag.String("proxy", "", "URL of the forward proxy")
	ca := flag.String("ca", "", "PEM file with the CA of the server")
	serverName := flag.String("server-name", "", "name that the TLS client asks for; default: the host of the URL")
	flag.Parse()

	// Not http.ProxyFromEnvironment: it never proxies requests to loopback.
	proxyURL, err := url.Parse(*proxy)
	if err != nil {
		log.Fatal(err)
	}
	pem, err := os.ReadFile(*ca)
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			Proxy:           http.ProxyURL(proxyURL),
			TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: *serverName},
		},
	}
	if err := json.NewEncoder(os.Stdout).Encode(fetch(&client, flag.Arg(0))); err != nil {
		log.Fatal(err)
	}
}

func fetch(client *http.Client, target string) result {
	response, err := client.Get(target)
	if err != nil {
		return result{Error: err.Error()}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return result{Error: err.Error()}
	}
	return result{Status: response.StatusCode, Body: string(body)}
}
