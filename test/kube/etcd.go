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
	// No peer connects to a single member. Its peer address must be the same in every run, as it is part of the stored membership,
	// but it is only a name without a port.
	config.ListenPeerUrls = nil
	config.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:1"}}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// Without fsync a write takes microseconds. Data in the kernel survives kill -9, which is all that tests do.
	config.UnsafeNoFsync = true
	// The election of the only member takes one election timeout.
	config.TickMs, config.ElectionMs = 20, 200
	// The same as kubeadm's: watch bookmarks and consistent lists from the cache depend on progress notifications.
	config.WatchProgressNotifyInterval = 5 * time.Second
	// Tests write a lot in a short time. Thousands of raft entries would only fill memory.
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

// wait returns when etcd has failed or must stop. It does not close etcd, since the API server must disconnect first.
func (e *etcdServer) wait(ctx context.Context) error {
	select {
	case err := <-e.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}

func (e *etcdServer) close() { e.Etcd.Close() }
