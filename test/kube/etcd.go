package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// etcdServer is an etcd of one member inside this process.
type etcdServer struct{ *embed.Etcd }

func startEtcd(dir string, port int) (*etcdServer, error) {
	client := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	config := embed.NewConfig()
	config.Dir = dir
	config.ListenClientUrls = []url.URL{client}
	config.AdvertiseClientUrls = []url.URL{client}
	// A single member is never dialled by a peer: its peer address, a part of the stored membership that must be the same
	// in every run, is only a name, and no port is spent on it.
	config.ListenPeerUrls = nil
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// Without fsync a write costs microseconds. What the kernel has survives kill -9, which is all that tests do.
	config.UnsafeNoFsync = true
	// The election of the only member takes one election timeout.
	config.TickMs, config.ElectionMs = 20, 200
	// As kubeadm sets it: watch bookmarks and consistent lists from the cache depend on progress notifications.
	config.WatchProgressNotifyInterval = 5 * time.Second
	// Tests write much and briefly; thousands of kept raft entries would only be memory.
	config.SnapshotCount, config.SnapshotCatchUpEntries = 2000, 500
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return &etcdServer{etcd}, nil
	case err := <-etcd.Err():
		return nil, err
	case <-time.After(30 * time.Second):
		etcd.Close()
		return nil, fmt.Errorf("not ready after 30 s")
	}
}

// wait returns when etcd failed or was told to stop. It does not close it: the API server has to let go of it first.
func (e *etcdServer) wait(ctx context.Context) error {
	select {
	case err := <-e.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}

func (e *etcdServer) close() { e.Etcd.Close() }
