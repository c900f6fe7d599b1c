// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/admitkit/admitkit/internal/devcert"
)

// startTimeout bounds the start of one process. It is long because tests start servers on busy machines.
const startTimeout = 2 * time.Minute

const loopback = "127.0.0.1"

// startEtcd starts etcd and returns its client URL.
func (s *Server) startEtcd(ctx context.Context) (string, error) {
	ports, err := freePorts(2)
	if err != nil {
		return "", err
	}
	client, peer := "http://"+address(ports[0]), "http://"+address(ports[1])
	etcd, err := s.start("etcd", map[string][]string{
		"data-dir":                    {filepath.Join(s.data.path, "etcd")},
		"listen-client-urls":          {client},
		"advertise-client-urls":       {client},
		"listen-peer-urls":            {peer},
		"initial-advertise-peer-urls": {peer},
		"initial-cluster":             {"default=" + peer},
		"unsafe-no-fsync":             {"true"}, // the data need not survive
	})
	if err != nil {
		return "", err
	}
	etcd.ready = func(ctx context.Context, p *process) error {
		return p.waitReady(ctx, http.DefaultClient, client+"/health")
	}
	return client, etcd.ready(ctx, etcd)
}

func (s *Server) startAPIServer(ctx context.Context, o Options) error {
	port := o.Port
	if port == 0 {
		ports, err := freePorts(1)
		if err != nil {
			return err
		}
		port = ports[0]
	}
	url := "https://" + address(port)
	flags, err := s.credentials(url)
	if err != nil {
		return err
	}
	maps.Copy(flags, map[string][]string{
		"etcd-servers":           {s.Etcd},
		"bind-address":           {loopback},
		"secure-port":            {strconv.Itoa(port)},
		"service-account-issuer": {url + "/"},
		"cert-dir":               {s.data.path},
		// The plugin needs service accounts that a controller creates, and no controllers run here.
		"disable-admission-plugins": {"ServiceAccount"},
		"service-cluster-ip-range":  {"10.0.0.0/24"},
		"allow-privileged":          {"true"},
		"authorization-mode":        {"RBAC"},
	})
	if !hasRoute() { // without a route, kube-apiserver finds no address to advertise and exits
		flags["advertise-address"] = []string{"192.0.2.1"}
	}
	for name, content := range o.Files {
		path, err := s.WriteFile(name, content)
		if err != nil {
			return err
		}
		flags[name] = []string{path}
	}
	maps.Copy(flags, o.Flags)
	server, err := s.start("kube-apiserver", flags)
	if err != nil {
		return err
	}
	server.ready = s.serves
	if err := server.ready(ctx, server); err != nil {
		if o.Port != 0 && errors.Is(err, errPortTaken) {
			return fmt.Errorf("port %d is in use", o.Port)
		}
		return err
	}
	return nil
}

// serves waits until p, a process of the API server, serves requests. It closes s.done when p ends, unless Restart replaces
// p.
func (s *Server) serves(ctx context.Context, p *process) error {
	go func() {
		<-p.done
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.replaced {
			s.signalDone()
		}
	}()
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/readyz", "/api/v1/namespaces/default"} {
		if err := p.waitReady(ctx, client, s.Config.Host+path); err != nil {
			return err
		}
	}
	return nil
}

// credentials generates all keys and certificates, sets Config and Kubeconfig, and returns the flags that name the
// files.
func (s *Server) credentials(url string) (map[string][]string, error) {
	ca, err := devcert.NewCA()
	if err != nil {
		return nil, err
	}
	serving, err := ca.Serving("localhost", loopback)
	if err != nil {
		return nil, err
	}
	certificate, key, err := encode(serving.Certificates[0])
	if err != nil {
		return nil, err
	}
	accounts, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	accountsKey, err := encodeKey(accounts)
	if err != nil {
		return nil, err
	}
	files := map[string]struct {
		content []byte
		flags   []string
	}{
		"apiserver.crt":        {certificate, []string{"tls-cert-file"}},
		"apiserver.key":        {key, []string{"tls-private-key-file"}},
		"client-ca.crt":        {ca.Bundle, []string{"client-ca-file"}},
		"service-accounts.key": {accountsKey, []string{"service-account-key-file", "service-account-signing-key-file"}},
	}
	flags := map[string][]string{}
	for name, file := range files {
		path, err := s.WriteFile(name, file.content)
		if err != nil {
			return nil, err
		}
		for _, flag := range file.flags {
			flags[flag] = []string{path}
		}
	}
	return flags, s.setAdmin(ca, url)
}

// setAdmin generates a client certificate of the group system:masters, for Config and Kubeconfig.
func (s *Server) setAdmin(ca *devcert.CA, url string) error {
	certificate, key, err := ca.Client("admin", "system:masters")
	if err != nil {
		return err
	}
	s.Config = &rest.Config{
		Host:            url,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.Bundle, CertData: certificate, KeyData: key},
		QPS:             1000, Burst: 2000, // no other client competes
	}
	const name = "admitkit"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca.Bundle}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	s.Kubeconfig, err = clientcmd.Write(*config)
	return err
}

func encode(c tls.Certificate) (certificate, key []byte, err error) {
	private, ok := c.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("a key of type %T", c.PrivateKey)
	}
	key, err = encodeKey(private)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), key, err
}

// encodeKey encodes a key as SEC 1, which the flags for service accounts need.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), err
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// freePorts returns n ports that are free now. Another process may take one before the server listens; Run then
// tries again.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", address(0))
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all stay open until the end, so that the ports differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func free(port int) bool {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return false
	}
	_ = l.Close() // nothing was written
	return true
}

// hasRoute reports whether this machine has a default route. It sends nothing.
func hasRoute() bool {
	c, err := net.Dial("udp", "192.0.2.1:9")
	if err != nil {
		return false
	}
	_ = c.Close() // nothing was written
	return true
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
