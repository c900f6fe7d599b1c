// SPDX-License-Identifier: Apache-2.0

package proof

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
)

// A lateEtcd is a proxy for etcd that delays the events of watches. An API server that uses it sees each change late, but
// its own reads and writes are not delayed.
type lateEtcd struct {
	url    string
	server *grpc.Server
	conn   *grpc.ClientConn
}

// watchMethod is the method of etcd's API that streams events.
const watchMethod = "/etcdserverpb.Watch/Watch"

func newLateEtcd(etcd string, by time.Duration) (*lateEtcd, error) {
	address, err := url.Parse(etcd)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(address.Host, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	e := &lateEtcd{url: "http://" + listener.Addr().String(), conn: conn}
	e.server = grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(1<<30), grpc.MaxSendMsgSize(1<<30),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return e.forward(stream, by) }))
	go func() { _ = e.server.Serve(listener) }() // it returns when stop is called
	return e, nil
}

func (e *lateEtcd) stop() error {
	e.server.Stop()
	return e.conn.Close()
}

// forward forwards the messages of a stream in both directions.
func (e *lateEtcd) forward(client grpc.ServerStream, by time.Duration) error {
	method, _ := grpc.MethodFromServerStream(client)
	ctx, cancel := context.WithCancel(client.Context())
	defer cancel()
	if sent, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, sent)
	}
	etcd, err := e.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for {
			var message []byte
			if err := client.RecvMsg(&message); err != nil {
				if errors.Is(err, io.EOF) {
					_ = etcd.CloseSend() // it never fails
				}
				return
			}
			if etcd.SendMsg(&message) != nil {
				return // RecvMsg of etcd returns the reason
			}
		}
	}()
	if method != watchMethod {
		by = 0
	}
	return copyMessages(client, etcd, by)
}

// copyMessages sends each message of etcd to the client after a delay. It returns the error that ended etcd's
// stream, or nil.
func copyMessages(client grpc.ServerStream, etcd grpc.ClientStream, by time.Duration) error {
	type received struct {
		message []byte
		err     error
		due     time.Time
	}
	messages := make(chan received, 1<<16)
	go func() {
		defer close(messages)
		for {
			var r received
			r.err = etcd.RecvMsg(&r.message)
			r.due = time.Now().Add(by)
			messages <- r
			if r.err != nil {
				return
			}
		}
	}()
	for r := range messages {
		if by > 0 {
			<-time.After(time.Until(r.due))
		}
		if errors.Is(r.err, io.EOF) {
			client.SetTrailer(etcd.Trailer())
			return nil
		}
		if r.err != nil {
			return r.err
		}
		if err := client.SendMsg(&r.message); err != nil {
			return err
		}
	}
	return nil
}

// rawCodec passes messages on as they are.
type rawCodec struct{}

// Name returns the name of the codec that etcd's clients use.
func (rawCodec) Name() string { return "proto" }

// Marshal returns the bytes of a message.
func (rawCodec) Marshal(message any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*message.(*[]byte))}, nil
}

// Unmarshal copies the bytes of a message.
func (rawCodec) Unmarshal(data mem.BufferSlice, message any) error {
	*message.(*[]byte) = data.Materialize()
	return nil
}
