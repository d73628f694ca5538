package lab

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// ErrServerGone says that a stream ended because its server did, not because
// the slot could not be decoded.
var ErrServerGone = errors.New("the server ended the stream")

// Consumer receives the changes of the load's tables from a slot of the plugin
// pgoutput, as an application would: it notes each transaction that has come
// whole, confirms soon after, and after any interruption starts where the slot
// stands.
type Consumer struct {
	Slot         string
	Database     string        // "" is postgres
	ConfirmEvery time.Duration // the shortest distance of two confirmations; 0 is 10 ms
	From         cluster.LSN   // where it goes on by its own account; 0 is where the slot stands
	Deliveries   *Deliveries   // where the received transactions are noted; never nil
}

// Stream is one connection of a consumer to its slot.
type Stream struct {
	consumer  *Consumer
	number    int
	conn      *pgconn.PgConn
	cancel    context.CancelFunc
	done      chan struct{}
	err       error // read it after done
	confirmed atomic.Uint64
	reached   atomic.Uint64 // position, for others to read

	decoder  decoder
	position cluster.LSN // what may be confirmed
	sent     time.Time   // of the last confirmation
}

// Start connects to the slot on a node. A slot that a dead connection still
// holds is waited for; any other refusal is an error.
func (c *Consumer) Start(ctx context.Context, node *Node) (*Stream, error) {
	var stream *Stream
	err := poll(ctx, 50*time.Millisecond, fmt.Sprintf("slot %q on node %q to be free", c.Slot, node.name), func() (bool, error) {
		var err error
		stream, err = c.connect(ctx, node)
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "55006" {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	// The stream outlives the call that started it; Stop, Kill or the server ends it.
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stream.cancel = cancel
	go func() {
		defer close(stream.done)
		stream.err = stream.run(background)
	}()
	return stream, nil
}

func (c *Consumer) connect(ctx context.Context, node *Node) (*Stream, error) {
	conn, err := pgconn.Connect(ctx, node.Conninfo(c.Database, "")+" replication=database")
	if err != nil {
		return nil, fmt.Errorf("connecting a consumer to node %q: %w", node.name, err)
	}
	arguments := []string{"proto_version '1'", "publication_names '" + Publication + "'"}
	if node.cluster.decodesMessages() {
		arguments = append(arguments, "messages 'true'")
	}
	// The server takes the later of this and the slot's own confirmed_flush_lsn.
	err = pglogrepl.StartReplication(ctx, conn, c.Slot, pglogrepl.LSN(c.From), pglogrepl.StartReplicationOptions{
		Mode:       pglogrepl.LogicalReplication,
		PluginArgs: arguments,
	})
	if err != nil {
		closeQuickly(conn)
		return nil, fmt.Errorf("starting to stream from slot %q on node %q: %w", c.Slot, node.name, err)
	}
	number := c.Deliveries.begin(node.name)
	return &Stream{
		consumer: c, number: number, conn: conn, done: make(chan struct{}), sent: time.Now(),
		decoder: decoder{deliveries: c.Deliveries, stream: number, node: node.name},
	}, nil
}

func closeQuickly(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // nothing depends on a polite end
}

// Number tells this stream's deliveries from those of others.
func (s *Stream) Number() int { return s.number }

// Confirmed is the last position that was confirmed to the server.
func (s *Stream) Confirmed() cluster.LSN { return cluster.LSN(s.confirmed.Load()) }

// Done is closed when the stream has ended.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Err is why an ended stream ended: nil after Stop and Kill, ErrServerGone when
// the server went away, and otherwise what could not be decoded or received.
func (s *Stream) Err() error {
	<-s.done
	return s.err
}

// Stop confirms what was received and closes the connection.
func (s *Stream) Stop() error {
	s.cancel()
	return s.Err()
}

// Kill cuts the connection: what was received last stays unconfirmed.
func (s *Stream) Kill() error {
	_ = s.conn.Conn().Close() // the stream's own error is what counts
	<-s.done
	s.cancel()
	if errors.Is(s.err, ErrServerGone) {
		return nil
	}
	return s.err
}

func (s *Stream) run(ctx context.Context) error {
	defer closeQuickly(s.conn)
	for {
		message, err := s.receive(ctx)
		if ctx.Err() != nil {
			return s.confirm(context.WithoutCancel(ctx), true)
		}
		if err != nil {
			return err
		}
		if message != nil {
			if err := s.handle(ctx, message); err != nil {
				return err
			}
		}
		if err := s.confirm(ctx, false); err != nil {
			return err
		}
	}
}

// receive gives nil when it is time to confirm and nothing came.
func (s *Stream) receive(ctx context.Context) (pgproto3.BackendMessage, error) {
	bounded, cancel := context.WithDeadline(ctx, time.Now().Add(s.interval()))
	defer cancel()
	message, err := s.conn.ReceiveMessage(bounded)
	if err != nil && bounded.Err() != nil && pgconn.Timeout(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: receiving from slot %q: %w", ErrServerGone, s.consumer.Slot, err)
	}
	return message, nil
}

func (s *Stream) interval() time.Duration {
	if s.consumer.ConfirmEvery > 0 {
		return s.consumer.ConfirmEvery
	}
	return 10 * time.Millisecond
}

func (s *Stream) handle(ctx context.Context, message pgproto3.BackendMessage) error {
	switch m := message.(type) {
	case *pgproto3.CopyData:
		return s.data(ctx, m.Data)
	case *pgproto3.ErrorResponse:
		err := pgconn.ErrorResponseToPgError(m)
		if lostServer(err) {
			return fmt.Errorf("%w: %w", ErrServerGone, err)
		}
		return fmt.Errorf("streaming from slot %q: %w", s.consumer.Slot, err)
	case *pgproto3.CopyDone, *pgproto3.CommandComplete:
		return fmt.Errorf("%w: it has nothing more to send", ErrServerGone)
	case *pgproto3.NoticeResponse, *pgproto3.ParameterStatus:
		return nil
	default:
		return fmt.Errorf("streaming from slot %q: unexpected message %T", s.consumer.Slot, message)
	}
}

func (s *Stream) data(ctx context.Context, data []byte) error {
	if len(data) == 0 {
		return fmt.Errorf("streaming from slot %q: an empty message", s.consumer.Slot)
	}
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		keepalive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		if err != nil {
			return fmt.Errorf("streaming from slot %q: %w", s.consumer.Slot, err)
		}
		// All that ended before it was sent before it. In the middle of a
		// transaction that transaction's end is still to come.
		if !s.decoder.open {
			s.reach(cluster.LSN(keepalive.ServerWALEnd))
		}
		if keepalive.ReplyRequested {
			return s.confirm(ctx, true)
		}
		return nil
	case pglogrepl.XLogDataByteID:
		change, err := pglogrepl.ParseXLogData(data[1:])
		if err != nil {
			return fmt.Errorf("streaming from slot %q: %w", s.consumer.Slot, err)
		}
		end, err := s.decoder.decode(change.WALData)
		if err != nil {
			return fmt.Errorf("streaming from slot %q: %w", s.consumer.Slot, err)
		}
		s.reach(end)
		return nil
	default:
		return fmt.Errorf("streaming from slot %q: unexpected message of kind %q", s.consumer.Slot, data[0])
	}
}

// reach comes after what it stands for has been noted.
func (s *Stream) reach(position cluster.LSN) {
	s.position = max(s.position, position)
	s.reached.Store(uint64(s.position))
}

// confirm tells the server how far the consumer is: when that moved and the
// interval has passed, or at once.
func (s *Stream) confirm(ctx context.Context, now bool) error {
	moved := s.position > s.Confirmed()
	if !now && (!moved || time.Since(s.sent) < s.interval()) {
		return nil
	}
	err := pglogrepl.SendStandbyStatusUpdate(ctx, s.conn, pglogrepl.StandbyStatusUpdate{WALWritePosition: pglogrepl.LSN(s.position)})
	if err != nil {
		return fmt.Errorf("%w: confirming %s: %w", ErrServerGone, s.position, err)
	}
	s.sent = time.Now()
	s.confirmed.Store(uint64(s.position))
	return nil
}
