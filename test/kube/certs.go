package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is so long that no kept --dir expires during a test.
const validity = 10 * 365 * 24 * time.Hour

// pki is the folder of one authority, which signs the serving certificate and the users' client certificates, and of the key that
// signs service account tokens. Later runs read the same files.
type pki struct {
	dir string
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

func openPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p := &pki{dir: dir}
	var err error
	if p.ca, p.key, err = p.pair("ca", &x509.Certificate{
		Subject: pkix.Name{CommonName: "kube-test-ca"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}); err != nil {
		return nil, err
	}
	if _, _, err = p.pair("apiserver", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(serviceIP)},
	}); err != nil {
		return nil, err
	}
	for _, u := range []user{adminUser, controllerManagerUser, schedulerUser} {
		if _, _, err = p.pair(u.file, &x509.Certificate{
			Subject:     pkix.Name{CommonName: u.name, Organization: []string{u.group}},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}); err != nil {
			return nil, err
		}
	}
	_, err = p.privateKey("service-account")
	return p, err
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// pair reads or creates NAME.crt and NAME.key. It sets the template's serial, validity and key. The first pair is the authority,
// which signs itself.
func (p *pki) pair(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := p.privateKey(name)
	if err != nil {
		return nil, nil, err
	}
	der, err := readPEM(p.path(name + ".crt"))
	if errors.Is(err, fs.ErrNotExist) {
		template.BasicConstraintsValid = true
		template.KeyUsage |= x509.KeyUsageDigitalSignature
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(validity)
		if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
			return nil, nil, err
		}
		parent, signer := p.ca, p.key
		if template.IsCA {
			parent, signer = template, key
		}
		if der, err = x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer); err != nil {
			return nil, nil, err
		}
		err = writePEM(p.path(name+".crt"), "CERTIFICATE", der, public)
	}
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

// privateKey reads or creates NAME.key. It is P-256, since a test pays for every handshake and every token.
func (p *pki) privateKey(name string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(p.path(name + ".key"))
	if err == nil {
		return x509.ParseECPrivateKey(der)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if der, err = x509.MarshalECPrivateKey(key); err != nil {
		return nil, err
	}
	return key, writePEM(p.path(name+".key"), "EC PRIVATE KEY", der, secret)
}

func readPEM(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New(path + " holds no PEM block")
	}
	return block.Bytes, nil
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}
