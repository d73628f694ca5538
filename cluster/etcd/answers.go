package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/slotkeeper/slotkeeper/cluster"
)

// Answer is what the promotion gate of one node said.
type Answer struct {
	Node  string    `json:"node"`
	At    time.Time `json:"at"`
	Allow bool      `json:"allow"`
	Code  string    `json:"code"`
	Line  string    `json:"line"`
}

// Answers are those of one failover: of all candidates that would have ended the
// same timeline.
type Answers struct {
	Timeline cluster.Timeline `json:"timeline"`
	Refusals int              `json:"refusals"`
	Last     []Answer         `json:"last"` // the newest last, at most maxAnswers
}

// maxAnswers bounds the one key that they are kept under.
const maxAnswers = 16

// maxLine bounds an answer's line, in bytes.
const maxLine = 1024

// Answers gives the gate's answers in the failover that ends timeline.
func (c *Client) Answers(ctx context.Context, timeline cluster.Timeline) (Answers, error) {
	a, _, err := c.answers(ctx, timeline)
	return a, err
}

func (c *Client) answers(ctx context.Context, timeline cluster.Timeline) (a Answers, revision int64, err error) {
	key := c.key("gate")
	err = c.do(ctx, "reading the gate's answers", func(ctx context.Context) error {
		resp, err := c.v3.Get(ctx, key)
		if err != nil || len(resp.Kvs) == 0 {
			return err
		}
		revision = resp.Kvs[0].ModRevision
		// What is not such a document is replaced by the next answer.
		if json.Unmarshal(resp.Kvs[0].Value, &a) != nil {
			a = Answers{}
		}
		return nil
	})
	if a.Timeline != timeline {
		a = Answers{Timeline: timeline}
	}
	return a, revision, err
}

// NoteAnswer adds an answer to those of its failover; the first one of a failover
// replaces those of the one before. Other nodes may write at the same time. Needs
// no leadership: the gate speaks when there may be no leader.
func (c *Client) NoteAnswer(ctx context.Context, timeline cluster.Timeline, answer Answer) error {
	if len(answer.Line) > maxLine {
		answer.Line = answer.Line[:maxLine]
	}
	key := c.key("gate")
	for {
		a, revision, err := c.answers(ctx, timeline)
		if err != nil {
			return err
		}
		if !answer.Allow {
			a.Refusals++
		}
		a.Last = append(a.Last, answer)
		a.Last = a.Last[max(0, len(a.Last)-maxAnswers):]
		text, err := json.Marshal(a)
		if err != nil {
			return fmt.Errorf("encoding the gate's answer: %w", err)
		}
		written := false
		err = c.do(ctx, "noting the gate's answer", func(ctx context.Context) error {
			resp, err := c.v3.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
				Then(clientv3.OpPut(key, string(text))).Commit()
			written = err == nil && resp.Succeeded
			return err
		})
		if err != nil || written {
			return err
		}
	}
}
