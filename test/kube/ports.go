package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"syscall"
)

// ports are the two TCP ports, on 127.0.0.1, of one control plane.
type ports struct {
	API  int `json:"api"`
	Etcd int `json:"etcd"`
}

// choosePorts takes each port from the request, else from the last run in the folder, else a free one. It records the choice.
func choosePorts(path string, wish ports) (ports, error) {
	last, err := readPorts(path)
	if err != nil {
		return ports{}, err
	}
	free, err := freePorts(2)
	if err != nil {
		return ports{}, err
	}
	chosen := ports{API: first(wish.API, last.API, free[0]), Etcd: first(wish.Etcd, last.Etcd, free[1])}
	if chosen.API == chosen.Etcd {
		return ports{}, fmt.Errorf("the API server and etcd cannot share port %d", chosen.API)
	}
	content, err := json.Marshal(chosen)
	if err != nil {
		return ports{}, err
	}
	return chosen, writeFile(path, content, public)
}

func readPorts(path string) (ports, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ports{}, nil
	}
	if err != nil {
		return ports{}, err
	}
	var p ports
	if err := json.Unmarshal(content, &p); err != nil {
		return ports{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return p, nil
}

// The ports to choose from are below those that Linux (from 32768) and macOS (from 49152) give to listeners and connections by
// themselves, and below the node ports (from 30000). So a server finds its port free also when it starts again.
const minPort, maxPort = 10_000, 30_000

// freePorts finds n different ports on which nobody listens. It holds all of them until the last one is found.
func freePorts(n int) ([]int, error) {
	free := make([]int, 0, n)
	for len(free) < n {
		port := minPort + rand.IntN(maxPort-minPort)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer l.Close()
		free = append(free, port)
	}
	return free, nil
}

func first(candidates ...int) int {
	for _, c := range candidates {
		if c != 0 {
			return c
		}
	}
	return 0
}
