package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// DefaultQuota is etcd's own, where nothing else is said.
const DefaultQuota = 2 << 30

// Space is how full an etcd is.
type Space struct {
	Used  int64 // bytes of its database that hold something, the most of any member
	Quota int64 // bytes from which on it takes no writes; DefaultQuota where it does not say
}

// Space asks every endpoint, each for a second at most; one answer is enough.
func (c *Client) Space(ctx context.Context) (Space, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	answers := make([]Space, len(c.opts.Endpoints))
	errs := make([]error, len(c.opts.Endpoints))
	var group sync.WaitGroup
	for i, endpoint := range c.opts.Endpoints {
		group.Go(func() { answers[i], errs[i] = c.spaceOf(ctx, endpoint) })
	}
	group.Wait()
	most, answered := Space{Quota: DefaultQuota}, false
	for i, a := range answers {
		if errs[i] != nil {
			continue
		}
		if answered = true; a.Used > most.Used {
			most.Used = a.Used
		}
		if a.Quota > 0 {
			most.Quota = a.Quota
		}
	}
	if !answered {
		return Space{}, fmt.Errorf("asking how full etcd is: %w", errors.Join(errs...))
	}
	return most, nil
}

func (c *Client) spaceOf(ctx context.Context, endpoint string) (Space, error) {
	s, err := c.v3.Status(ctx, endpoint)
	if err != nil {
		return Space{}, err
	}
	// Before 3.6 the API does not give the quota.
	used, quota := s.DbSizeInUse, s.DbSizeQuota
	if used == 0 {
		used = s.DbSize
	}
	if quota == 0 {
		quota = c.quotaMetric(ctx, endpoint)
	}
	return Space{Used: used, Quota: quota}, nil
}

// quotaMetric reads the quota from the member's metrics; 0 where they are not to
// be had. It is set at the member's start, so one look is enough.
func (c *Client) quotaMetric(ctx context.Context, endpoint string) int64 {
	if known, ok := c.quotas.Load(endpoint); ok {
		return known.(int64)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/metrics", http.NoBody)
	if err != nil {
		return 0
	}
	transport := &http.Transport{TLSClientConfig: c.tls.Clone(), DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0
	}
	defer func() { _ = response.Body.Close() }() // what was wanted of it is read
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		value, found := strings.CutPrefix(lines.Text(), "etcd_server_quota_backend_bytes ")
		if !found {
			continue
		}
		quota, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0
		}
		c.quotas.Store(endpoint, int64(quota))
		return int64(quota)
	}
	return 0
}

// Compacted reports whether history was ever compacted away, and how many
// revisions there have been. An etcd that is never compacted grows for ever.
func (c *Client) Compacted(ctx context.Context) (compacted bool, revisions int64, err error) {
	err = c.do(ctx, "asking whether etcd is compacted", func(ctx context.Context) error {
		now, err := c.v3.Get(ctx, c.key("id"))
		if err != nil {
			return err
		}
		revisions = now.Header.Revision
		_, err = c.v3.Get(ctx, c.key("id"), clientv3.WithRev(1))
		if isCompacted(err) {
			compacted, err = true, nil
		}
		return err
	})
	return compacted, revisions, err
}
