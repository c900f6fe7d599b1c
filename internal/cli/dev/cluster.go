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

// An existingCluster is the cluster of a kubeconfig. It may have other users.
type existingCluster struct {
	context string
	records *registry
	note    *stateFile
}

// joinCluster asks for confirmation, removes leftovers of earlier runs, and starts the proxy.
func joinCluster(ctx context.Context, d *session) (_ target, err error) {
	config := d.config
	name := contextName(&d.o.Where)
	if err := confirm(ctx, d, name, config.Host); err != nil {
		return nil, err
	}
	here := state{Server: config.Host, Context: name, Cluster: clusterID(ctx, config), Time: time.Now()}
	if err := removeLeftovers(ctx, d.s, config, &d.o.Where, here); err != nil {
		return nil, err
	}
	host, port, err := advertisedAddress(d.o.Advertise, config.Host)
	if err != nil {
		return nil, err
	}
	secret, id := randomText(), randomText()
	if d.proxy, err = newProxy(net.JoinHostPort("", port), host, secret, d.out.admission); err != nil {
		return nil, problem.New("%w", err)
	}
	f := adaptation{proxy: d.proxy, prefix: "admitkit-dev-" + id + "-", owner: id, ignore: !d.o.Fail, careful: true}
	if d.records, err = newRegistry(config, f); err != nil {
		return nil, err
	}
	if _, err := d.records.removeOwned(ctx); err != nil { // deletes nothing yet, but checks the connection and the permissions
		return nil, err
	}
	here.ID, here.PID = id, os.Getpid()
	note, err := writeState(here)
	if err != nil {
		return nil, err
	}
	policy := "failurePolicy is Ignore (--fail keeps that of the hooks)"
	if d.o.Fail {
		policy = "failurePolicy is that of the hooks, so requests can fail if this machine does not answer"
	}
	d.s.Note("the cluster calls %s; %s, timeouts are at most %d seconds, kube-system is excluded", d.proxy.url, policy, maxTimeout)
	return &existingCluster{name, d.records, note}, nil
}

func (*existingCluster) done() <-chan struct{} { return nil } // dev does not watch the cluster

func (*existingCluster) err() error { return nil }

// close removes the registrations, and then the state file. If the registrations cannot be removed, the state file
// stays, and the next dev process tries again.
func (c *existingCluster) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), removalTimeout)
	defer cancel()
	if err := c.records.remove(ctx); err != nil {
		c.note.release()
		return problem.New("cannot remove the registrations: %w", err).Hint("admitkit dev --cluster --context %s  # removes them when it starts", c.context)
	}
	return c.note.remove()
}

// confirm asks the user before dev registers hooks in a cluster. It returns an error unless the user agrees.
func confirm(ctx context.Context, d *session, name, server string) error {
	if d.o.Yes {
		return nil
	}
	in, ok := d.s.In.(*os.File)
	if !ok || !screen.Terminal(in) {
		return problem.New("--cluster registers hooks in the cluster of context %s (%s), and there is no terminal for the confirmation", name, server).Hint("--yes")
	}
	fmt.Fprintf(d.s.Err, "admitkit: register %s of %s in the cluster of context %s (%s)? [y/N] ", textutil.Count(len(d.current.webhooks()), "hook"), d.o.hooksSource(), name, server)
	answer := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // the end of the input means no
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

// advertisedAddress returns the host and port at which the cluster calls this machine: the value of --advertise, or the
// local address of connections to the cluster.
func advertisedAddress(advertise, server string) (host, port string, err error) {
	if advertise != "" {
		if host, port, err = net.SplitHostPort(advertise); err != nil {
			host, port = strings.Trim(advertise, "[]"), "0"
		}
		if _, bad := strconv.ParseUint(port, 10, 16); bad != nil || host == "" || strings.ContainsAny(host, "/ ") {
			return "", "", problem.New("--advertise %s is not HOST or HOST:PORT", advertise)
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
	c, err := net.Dial("udp", net.JoinHostPort(u.Hostname(), to)) // a UDP dial sends nothing
	if err != nil {
		return "", "", problem.New("cannot find the address of this machine for the cluster: %w", err).Hint("--advertise HOST:PORT")
	}
	defer func() { _ = c.Close() }() // nothing was written
	host, _, err = net.SplitHostPort(c.LocalAddr().String())
	return host, "0", err
}
