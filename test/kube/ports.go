package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
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

// freePorts asks the kernel for n different ports. It holds all of them until the last one is known, since the kernel could give
// one twice.
func freePorts(n int) ([]int, error) {
	free := make([]int, 0, n)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		free = append(free, l.Addr().(*net.TCPAddr).Port)
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
