package main

import (
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"
)

// user is a client identity: a certificate in certs/FILE.crt and a kubeconfig with it.
type user struct{ name, group, file string }

var (
	adminUser = user{name: "admin", group: "system:masters", file: "admin"}
	// The names to which RBAC's bootstrap policy grants rights. So the audit log tells the components apart from the tests.
	controllerManagerUser = user{name: "system:kube-controller-manager", group: "system:authenticated", file: "controller-manager"}
	schedulerUser         = user{name: "system:kube-scheduler", group: "system:authenticated", file: "scheduler"}
)

// kubeconfig is the path of a user's kubeconfig. The admin's has the plain name, since people look for it.
func (s *state) kubeconfig(u user) string {
	if u == adminUser {
		return s.path("kubeconfig")
	}
	return s.path(u.file + ".kubeconfig")
}

// writeKubeconfig embeds the certificates, so that another process needs only this file.
func writeKubeconfig(s *state, u user) error {
	config := api.NewConfig()
	var err error
	read := func(name string) (content []byte) {
		if err == nil {
			content, err = os.ReadFile(s.pki.path(name))
		}
		return content
	}
	cluster := api.NewCluster()
	cluster.Server = s.server()
	cluster.CertificateAuthorityData = read("ca.crt")
	auth := api.NewAuthInfo()
	auth.ClientCertificateData = read(u.file + ".crt")
	auth.ClientKeyData = read(u.file + ".key")
	if err != nil {
		return err
	}
	kubeContext := api.NewContext()
	kubeContext.Cluster, kubeContext.AuthInfo = "kube", u.file
	config.Clusters["kube"], config.AuthInfos[u.file], config.Contexts["kube"] = cluster, auth, kubeContext
	config.CurrentContext = "kube"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return writeFile(s.kubeconfig(u), content, secret)
}

// adminClientConfig is for this process's own requests, such as the check of the API server's readiness.
func adminClientConfig(s *state) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig(adminUser))
	if err != nil {
		return nil, err
	}
	config.UserAgent = "kube-test-readiness"
	return config, nil
}
