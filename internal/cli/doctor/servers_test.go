// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/admitkit/admitkit/internal/apiserver"
	"github.com/admitkit/admitkit/internal/cli/screen"
)

// TestServers lets two API servers call a webhook that fails. The report must have the sum of their calls, whichever of
// them the kubeconfig names.
func TestServers(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	must(t, os.WriteFile(tokens, []byte(token+`,admin,1,"system:masters"`), 0o600))
	r := newRig(t, map[string][]string{"endpoint-reconciler-type": {"none"}, "token-auth-file": {tokens}})
	other := r.another(t, map[string][]string{"endpoint-reconciler-type": {"none"}, "token-auth-file": {tokens}})
	r.expose(t, r.config, "192.0.2.1")
	r.expose(t, other.config, "192.0.2.2")
	w := r.world(t, decide(func() error { return errors.New("the handler failed") }))
	w.call(t, 2)
	through := *w
	through.rig = other
	through.call(t, 3)
	for _, from := range []*rig{r, other} {
		report := from.doctor(t)
		row := report.Traffic.Calls[0]
		if report.Traffic.Servers != 2 || row.Failed != 5 || row.Denied < 2 {
			t.Errorf("the calls of %d API servers are %+v, want 2 with 5 failed calls and 2 denials", report.Traffic.Servers, row)
		}
		if got, want := found(report), w.names("fails-closed CONFIGURATION"); len(got) != 1 || got[0] != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	must(t, other.server.Stop())
	report := r.doctor(t)
	if report.Traffic.Servers != 1 || report.Traffic.Calls[0].Failed != 2 {
		t.Errorf("the calls of %d API servers are %+v, want 1 with 2 failed calls", report.Traffic.Servers, report.Traffic.Calls)
	}
	var text bytes.Buffer
	must(t, report.Write("text", &text, screen.Painter{}))
	for _, want := range []string{"from the metrics of 1 of 2 API servers", "/metrics of 1 API server"} {
		if !strings.Contains(strings.Join(strings.Fields(text.String()), " "), want) {
			t.Errorf("the text lacks %q:\n%s", want, &text)
		}
	}
}

const token = "a-token-of-both"

// another starts a second API server of the same cluster. Both then accept the configurations of both rigs.
func (r *rig) another(t *testing.T, flags map[string][]string) *rig {
	t.Helper()
	flags["etcd-servers"] = []string{r.server.Etcd}
	server, err := apiserver.Run(context.WithoutCancel(t.Context()), apiserver.Options{
		Files: map[string][]byte{"egress-selector-config-file": r.egress()}, Flags: flags,
	})
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop()) })
	trusted := slices.Concat(r.server.Config.CAData, server.Config.CAData)
	shared := func(host string) *rest.Config {
		return &rest.Config{Host: host, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: trusted}}
	}
	r.config = shared(r.server.Config.Host)
	config := shared(server.Config.Host)
	return &rig{network: r.network, server: server, config: config, client: clientFor(config), kubelets: r.kubelets}
}

// expose makes an API server known by an address, which leads to its port on loopback. API servers do this themselves if
// all of them have the same port.
func (r *rig) expose(t *testing.T, config *rest.Config, address string) {
	t.Helper()
	u, err := url.Parse(config.Host)
	must(t, err)
	port, err := strconv.Atoi(u.Port())
	must(t, err)
	r.route(t, net.JoinHostPort(address, u.Port()), u.Host)
	must(t, second(r.client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{GenerateName: "kubernetes-", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(port))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}, metav1.CreateOptions{})))
}
