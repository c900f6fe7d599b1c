// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// A target gives the client access to the server process.
type target struct {
	greeting
	process *exec.Cmd
	input   io.Closer
	tls     *tls.Config
	control *conn
}

// start runs this program again as the server, with the arguments.
func start(arguments ...string) (*target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	t := &target{process: exec.Command(self, arguments...)}
	t.process.Stderr = os.Stderr
	if t.input, err = t.process.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := t.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := t.process.Start(); err != nil {
		return nil, err
	}
	if err := t.greet(output); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the server process: %w", err), t.stop())
	}
	return t, nil
}

func (t *target) greet(output io.Reader) error {
	if err := json.NewDecoder(output).Decode(&t.greeting); err != nil {
		return err
	}
	certificate, err := x509.ParseCertificate(t.Certificate)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	t.tls = &tls.Config{RootCAs: roots, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	t.control, err = t.dial()
	return err
}

func (t *target) stop() error {
	if t.control != nil {
		_ = t.control.Close()
	}
	return errors.Join(t.input.Close(), t.process.Wait())
}

// cpu returns the CPU time that the server process has used so far. With collect, the server collects garbage first.
func (t *target) cpu(collect bool) (time.Duration, error) {
	query := ""
	if collect {
		query = "?collect"
	}
	text, err := t.control.send([]byte("GET /usage" + query + " HTTP/1.1\r\nHost: " + t.Addr + "\r\n\r\n"))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return time.Duration(n), err
}

// A conn is one persistent connection. It costs less than an http.Client, which matters because client and
// server share the machine.
type conn struct {
	*tls.Conn
	in *bufio.Reader
}

func (t *target) dial() (*conn, error) {
	c, err := tls.Dial("tcp", t.Addr, t.tls)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReaderSize(c, 16<<10)}, nil
}

// request returns the bytes of a call, with the headers that an API server sends.
func (t *target) request(path string, body []byte) []byte {
	return append([]byte("POST "+path+"?timeout=10s HTTP/1.1\r\nHost: "+t.Addr+
		"\r\nUser-Agent: kube-apiserver-admission\r\nContent-Length: "+strconv.Itoa(len(body))+
		"\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"), body...)
}

// send sends a request and returns the body of the response.
func (c *conn) send(request []byte) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d: %.300s", response.StatusCode, body)
	}
	return body, nil
}
