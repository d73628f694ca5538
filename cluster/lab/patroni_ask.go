package lab

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Key reads one of Patroni's keys, such as leader; "" where it is not there.
func (p *Patroni) Key(ctx context.Context, name string) (string, error) {
	keys, err := p.Keys(ctx)
	return keys[name], err
}

// Keys reads all keys of the cluster, by their names below the scope.
func (p *Patroni) Keys(ctx context.Context) (map[string]string, error) {
	keys := map[string]string{}
	prefix := p.prefix()
	err := p.withEtcd(ctx, func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		for _, kv := range answer.Kvs {
			keys[string(kv.Key)[len(prefix):]] = string(kv.Value)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading Patroni's keys: %w", err)
	}
	return keys, nil
}

// Put writes one of Patroni's keys, as nobody but Patroni should.
func (p *Patroni) Put(ctx context.Context, name, value string) error {
	return p.withEtcd(ctx, func(ctx context.Context, client *clientv3.Client) error {
		_, err := client.Put(ctx, p.prefix()+name, value)
		return err
	})
}

// LeaderKey is the name in the leader key, "" where there is none.
func (p *Patroni) LeaderKey(ctx context.Context) (string, error) { return p.Key(ctx, "leader") }

// RevokeLeader takes the leader key away as the end of its lease would: after the
// death of the leader, so that nobody waits for its ttl.
func (p *Patroni) RevokeLeader(ctx context.Context) error {
	err := p.withEtcd(ctx, func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.Get(ctx, p.prefix()+"leader")
		if err != nil || len(answer.Kvs) == 0 {
			return err
		}
		_, err = client.Revoke(ctx, clientv3.LeaseID(answer.Kvs[0].Lease))
		return err
	})
	if err != nil {
		return fmt.Errorf("revoking the lease of Patroni's leader: %w", err)
	}
	return nil
}

func (p *Patroni) prefix() string { return "/service/" + p.options.Scope + "/" }

func (p *Patroni) withEtcd(ctx context.Context, do func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := p.etcd.Client(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, client), ignoreCanceled(client.Close()))
}

// MemberState is what Patroni's REST API says of its member.
type MemberState struct {
	State    string `json:"state"`
	Role     string `json:"role"`
	Timeline int    `json:"timeline"`
	Pause    bool   `json:"pause"`
}

// State asks the member's REST API.
func (m *PatroniMember) State(ctx context.Context) (MemberState, error) {
	var state MemberState
	_, text, err := m.REST(ctx, http.MethodGet, "/patroni", nil)
	if err == nil {
		err = json.Unmarshal([]byte(text), &state)
	}
	return state, err
}

// REST makes one request to the member's API, as nobody in particular, and gives
// status and body of the answer.
func (m *PatroniMember) REST(ctx context.Context, method, path string, body any) (int, string, error) {
	payload, err := json.Marshal(body)
	if err != nil {
		return 0, "", fmt.Errorf("asking Patroni %q: %w", m.node.name, err)
	}
	request, err := http.NewRequestWithContext(ctx, method, m.URL()+path, bytes.NewReader(payload))
	if err != nil {
		return 0, "", fmt.Errorf("asking Patroni %q: %w", m.node.name, err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it is this machine's, and the test's own
	answer, err := client.Do(request)
	if err != nil {
		return 0, "", fmt.Errorf("asking Patroni %q: %w", m.node.name, err)
	}
	defer func() { _ = answer.Body.Close() }() // it is read whole, or the answer is bad
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, "", fmt.Errorf("reading the answer of Patroni %q: %w", m.node.name, err)
	}
	return answer.StatusCode, string(text), nil
}

// want is REST for what must be answered with 200.
func (m *PatroniMember) want(ctx context.Context, method, path string, body any) error {
	code, text, err := m.REST(ctx, method, path, body)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("asking Patroni %q for %s %s: it answers %d: %s", m.node.name, method, path, code, text)
	}
	return err
}

// PatchConfig changes the dynamic configuration, and returns when the key in etcd
// is changed; members take it within a moment.
func (p *Patroni) PatchConfig(ctx context.Context, patch map[string]any) error {
	leader, err := p.Leader(ctx)
	if err != nil {
		return err
	}
	return leader.want(ctx, http.MethodPatch, "/config", patch)
}

// Pause stops or resumes automatic failover, and waits until every running member
// knows.
func (p *Patroni) Pause(ctx context.Context, on bool) error {
	var value any
	if on {
		value = true
	}
	if err := p.PatchConfig(ctx, map[string]any{"pause": value}); err != nil {
		return err
	}
	return poll(ctx, 50*time.Millisecond, "the members to know of the pause", func() (bool, error) {
		for _, m := range p.members {
			if !m.Running() {
				continue
			}
			if state, err := m.State(ctx); err != nil || state.Pause != on {
				return false, nil
			}
		}
		return true, nil
	})
}

// Switchover asks the leader to hand over to a candidate and waits until all
// members that run stream from it. Patroni answers when it is done, or when it was
// not: another one may have been promoted instead.
func (p *Patroni) Switchover(ctx context.Context, candidate *PatroniMember) error {
	leader, err := p.Leader(ctx)
	if err != nil {
		return err
	}
	// A member whose state is not in etcd yet is no good candidate to Patroni.
	code, text := 0, ""
	err = poll(ctx, 200*time.Millisecond, "Patroni to accept the switchover", func() (bool, error) {
		code, text, err = leader.REST(ctx, http.MethodPost, "/switchover", map[string]any{"leader": leader.Name(), "candidate": candidate.Name()})
		return code != http.StatusPreconditionFailed, err
	})
	if err != nil {
		return fmt.Errorf("switching over from %q to %q: %w: %s", leader.Name(), candidate.Name(), err, text)
	}
	if code != http.StatusOK {
		return fmt.Errorf("switching over from %q to %q: Patroni answers %d: %s", leader.Name(), candidate.Name(), code, text)
	}
	if err := p.WaitStreaming(ctx); err != nil {
		return err
	}
	if now, err := p.LeaderKey(ctx); err != nil || now != candidate.Name() {
		return errors.Join(err, fmt.Errorf("switching over from %q to %q: %q leads: %s", leader.Name(), candidate.Name(), now, text))
	}
	return nil
}

// FailOver kills the leader with its Patroni, takes its leader key away, and
// waits for the new one. The dead member stays dead.
func (p *Patroni) FailOver(ctx context.Context) (dead, leader *PatroniMember, err error) {
	if dead, err = p.Leader(ctx); err != nil {
		return nil, nil, err
	}
	if err := dead.Kill(ctx); err != nil {
		return dead, nil, err
	}
	if err := p.RevokeLeader(ctx); err != nil {
		return dead, nil, err
	}
	leader, err = p.Leader(ctx)
	return dead, leader, err
}
