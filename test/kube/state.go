package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// state is the content of --dir besides etcd's data: ports, certificates, tokens and their files. It is the same in every run on
// one folder, so that clients of a killed control plane reconnect to the next one.
type state struct {
	dir      string
	ports    ports
	pki      *pki
	token    string
	auditLog string
}

func openState(opts *options) (*state, error) {
	s := &state{dir: opts.dir}
	var err error
	if s.ports, err = choosePorts(s.path("ports.json"), ports{API: opts.port, Etcd: opts.etcdPort}); err != nil {
		return nil, fmt.Errorf("choosing ports: %w", err)
	}
	if s.pki, err = openPKI(s.path("certs")); err != nil {
		return nil, fmt.Errorf("opening certificates: %w", err)
	}
	if s.token, err = openToken(s.path("token")); err != nil {
		return nil, fmt.Errorf("opening the admin token: %w", err)
	}
	// The format of --token-auth-file: token, user, uid, groups.
	csv := fmt.Sprintf("%s,%s,%s,%s\n", s.token, adminUser.name, adminUser.name, adminUser.group)
	if err := writeFile(s.path("tokens.csv"), []byte(csv), secret); err != nil {
		return nil, err
	}
	for _, u := range []user{adminUser, controllerManagerUser, schedulerUser} {
		if err := writeKubeconfig(s, u); err != nil {
			return nil, fmt.Errorf("writing the kubeconfig of %s: %w", u.name, err)
		}
	}
	if opts.audit {
		s.auditLog = s.path("audit.log")
		if err := writeFile(s.path("audit-policy.yaml"), []byte(auditPolicy), public); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *state) path(name string) string { return filepath.Join(s.dir, name) }

func (s *state) server() string { return fmt.Sprintf("https://127.0.0.1:%d", s.ports.API) }

func openToken(path string) (string, error) {
	old, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(old)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	random := make([]byte, 24)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	token := hex.EncodeToString(random)
	return token, writeFile(path, []byte(token+"\n"), secret)
}

// Certificates are public: a sidecar with its own uid reads the authority's here.
const (
	public os.FileMode = 0o644
	secret os.FileMode = 0o600
)

// writeFile replaces a file in one step, so that a test never reads half of a kubeconfig.
func writeFile(path string, content []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", content, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
