package postgres

import (
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// middle stands between a session and the server and passes messages on.
type middle struct {
	pid    uint32       // what it gives out as process number, as poolers do; 0 for the server's own
	frozen atomic.Bool  // it reads and passes nothing on
	syncs  atomic.Int64 // how often the session waited for the server
	answer func()       // where set: called before a message of the server is passed on
}

// serve gives the conninfo by which sessions come.
func (m *middle) serve(t *testing.T) (conninfo string) {
	t.Helper()
	port := serve(t, func(c net.Conn) { m.pass(t, c) })
	return "host=127.0.0.1 sslmode=disable port=" + strconv.Itoa(port)
}

func (m *middle) pass(t *testing.T, client net.Conn) {
	defer client.Close()
	if m.frozen.Load() {
		io.Copy(io.Discard, client)
		return
	}
	server, err := net.Dial("tcp", at())
	if err != nil {
		t.Error(err)
		return
	}
	defer server.Close()
	front, back := pgproto3.NewFrontend(server, server), pgproto3.NewBackend(client, client)
	startup, err := back.ReceiveStartupMessage()
	if err != nil {
		return
	}
	front.Send(startup)
	if front.Flush() != nil {
		return
	}
	ended := make(chan struct{})
	defer func() { <-ended }()
	defer client.Close()
	go func() {
		defer close(ended)
		defer server.Close()
		m.up(back, front, client)
	}()
	m.down(front, back)
	if m.frozen.Load() {
		<-ended // the client must not see an end
	}
}

func (m *middle) up(back *pgproto3.Backend, front *pgproto3.Frontend, client net.Conn) {
	for {
		msg, err := back.Receive()
		if err != nil {
			return
		}
		if m.frozen.Load() {
			io.Copy(io.Discard, client)
			return
		}
		if _, ok := msg.(*pgproto3.Sync); ok {
			m.syncs.Add(1)
		}
		front.Send(msg)
		if front.Flush() != nil {
			return
		}
	}
}

func (m *middle) down(front *pgproto3.Frontend, back *pgproto3.Backend) {
	for {
		msg, err := front.Receive()
		if err != nil || m.frozen.Load() {
			return
		}
		if k, ok := msg.(*pgproto3.BackendKeyData); ok && m.pid != 0 {
			k.ProcessID = m.pid
		}
		if m.answer != nil {
			m.answer()
		}
		back.Send(msg)
		if back.Flush() != nil {
			return
		}
	}
}
