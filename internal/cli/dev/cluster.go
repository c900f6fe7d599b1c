// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/internal/textutil"
)

// A joined cluster is one that runs already, and that others may use.
type joined struct {
	context string
	records *registry
	note    *stateFile
}

// joinCluster makes ready to register hooks in the cluster of the kubeconfig.
func joinCluster(ctx context.Context, d *session) (_ place, err error) {
	config := d.config
	name := contextName(&d.o.Where)
	if err := confirm(ctx, d, name, config.Host); err != nil {
		return nil, err
	}
	here := state{Server: config.Host, Context: name, Cluster: clusterID(ctx, config), Time: time.Now()}
	if err := removeLeftovers(ctx, d.s, config, &d.o.Where, here); err != nil {
		return nil, err
	}
	host, port, err := reached(d.o.Advertise, config.Host)
	if err != nil {
		return nil, err
	}
	secret, id := randomText(), randomText()
	if d.proxy, err = newProxy(net.JoinHostPort("", port), host, secret, d.out.admission); err != nil {
		return nil, problem.New("%w", err)
	}
	f := frame{proxy: d.proxy, prefix: "admitkit-dev-" + id + "-", owner: id, ignore: !d.o.Fail, careful: true}
	if d.records, err = newRegistry(config, f); err != nil {
		return nil, err
	}
	if _, err := d.records.removeOwned(ctx); err != nil { // there are none; but the cluster is there, and lets us
		return nil, err
	}
	here.ID, here.PID = id, os.Getpid()
	note, err := writeState(here)
	if err != nil {
		return nil, err
	}
	policy := "failures of the hooks are ignored (--fail keeps their failurePolicy)"
	if d.o.Fail {
		policy = "failures of the hooks, and of this machine, are treated by their failurePolicy"
	}
	d.s.Note("the cluster is to call %s; %s, timeouts are %d seconds at the most, kube-system is left out", d.proxy.url, policy, maxTimeout)
	return &joined{name, d.records, note}, nil
}

func (*joined) done() <-chan struct{} { return nil } // nobody tells

func (*joined) err() error { return nil }

// close removes what was registered, and then the note of it: if the former fails, the next dev
// tries again.
func (j *joined) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), removalPatience)
	defer cancel()
	if err := j.records.remove(ctx); err != nil {
		j.note.release()
		return problem.New("what is registered could not be removed: %w", err).Hint("admitkit dev --cluster --context %s  # removes it when it starts", j.context)
	}
	return j.note.remove()
}

// confirm asks before anything is registered where others may be.
func confirm(ctx context.Context, d *session, name, server string) error {
	if d.o.Yes {
		return nil
	}
	in, ok := d.s.In.(*os.File)
	if !ok || !screen.Terminal(in) {
		return problem.New("--cluster registers hooks in the cluster of context %s (%s), and there is no terminal to ask on", name, server).Hint("--yes")
	}
	fmt.Fprintf(d.s.Err, "admitkit: register %s of %s in the cluster of context %s (%s)? [y/N] ", textutil.Count(len(d.current.webhooks()), "hook"), d.o.what(), name, server)
	answer := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // the end of the input is a no
		answer <- text
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case text := <-answer:
		if text = strings.ToLower(strings.TrimSpace(text)); text == "y" || text == "yes" {
			return nil
		}
		return problem.New("nothing was registered")
	}
}

// reached returns where the cluster calls this machine: where the user says, or else at the address
// by which this machine calls the cluster.
func reached(advertise, server string) (host, port string, err error) {
	if advertise != "" {
		if host, port, err = net.SplitHostPort(advertise); err != nil {
			host, port = strings.Trim(advertise, "[]"), "0"
		}
		if _, bad := strconv.ParseUint(port, 10, 16); bad != nil || host == "" || strings.ContainsAny(host, "/ ") {
			return "", "", problem.New("--advertise %s: neither HOST nor HOST:PORT", advertise)
		}
		return host, port, nil
	}
	if !strings.Contains(server, "://") {
		server = "https://" + server
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", "", problem.New("the address of the cluster: %w", err)
	}
	to := u.Port()
	if to == "" {
		to = "443"
	}
	c, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), to)) // sends nothing
	if err != nil {
		return "", "", problem.New("cannot tell where the cluster reaches this machine: %w", err).Hint("--advertise HOST:PORT")
	}
	defer func() { _ = c.Close() }() // nothing was written
	host, _, err = net.SplitHostPort(c.LocalAddr().String())
	return host, "0", err
}
