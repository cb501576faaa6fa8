package main

import (
	"net"
	"path/filepath"
	"testing"
)

func TestFreePortsAreDifferentAndCanBeBound(t *testing.T) {
	free, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, port := range free {
		if seen[port] {
			t.Errorf("port %d was given twice", port)
		}
		seen[port] = true
	}
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: free[0]})
	if err != nil {
		t.Fatalf("binding a free port: %v", err)
	}
	l.Close()
}

func TestASecondRunTakesThePortsOfTheFirst(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ports.json")
	run := func(wish ports) ports {
		t.Helper()
		chosen, err := choosePorts(file, wish)
		if err != nil {
			t.Fatal(err)
		}
		return chosen
	}
	first := run(ports{})
	if second := run(ports{}); second != first {
		t.Errorf("got %v, want %v again", second, first)
	}
	wished := run(ports{API: 12345})
	if want := (ports{API: 12345, Etcd: first.Etcd}); wished != want {
		t.Errorf("with a wish: got %v, want %v", wished, want)
	}
	if again := run(ports{}); again != wished {
		t.Errorf("after a wish: got %v, want %v", again, wished)
	}
}

func TestTheTwoServersCannotShareAPort(t *testing.T) {
	if _, err := choosePorts(filepath.Join(t.TempDir(), "ports.json"), ports{API: 12345, Etcd: 12345}); err == nil {
		t.Error("one port for both was accepted")
	}
}
