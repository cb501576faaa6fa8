package main

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestASecondRunReusesCertificatesAndTokens(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	before := contents(t, dir)
	second := open(t, dir)
	after := contents(t, dir)
	for name, content := range before {
		if after[name] != content {
			t.Errorf("%s changed between two runs", name)
		}
	}
	if len(before) < 10 || len(before) != len(after) {
		t.Errorf("got %d files, then %d", len(before), len(after))
	}
	if first.token != second.token || len(first.token) < 32 {
		t.Errorf("tokens %q and %q", first.token, second.token)
	}
}

func TestTheServingCertificateIsForTheNamesThatClientsUse(t *testing.T) {
	s := open(t, t.TempDir())
	cert, _, err := s.pki.pair("apiserver", nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.pki.ca)
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc", serviceIP} {
		if _, err := cert.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheAdminKubeconfigStandsAlone(t *testing.T) {
	s := open(t, t.TempDir())
	content, err := os.ReadFile(s.kubeconfig(adminUser))
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != s.server() || len(config.CAData) == 0 || len(config.CertData) == 0 || len(config.KeyData) == 0 {
		t.Errorf("got host %q, %d bytes of CA, %d of certificate", config.Host, len(config.CAData), len(config.CertData))
	}
}

func open(t *testing.T, dir string) *state {
	t.Helper()
	s, err := openState(&options{dir: dir, audit: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*", "certs/*"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range paths {
			if content, err := os.ReadFile(path); err == nil {
				found[path] = string(content)
			}
		}
	}
	return found
}
