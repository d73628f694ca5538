package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/slotkeeper/slotkeeper/cluster"
	"github.com/slotkeeper/slotkeeper/controller/plan"
	"github.com/slotkeeper/slotkeeper/controller/status"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("slotkeeper_"+name, help, labels, nil)
}

// The metrics of a Status. What is not known has no sample: a lost slot has no
// lag, and 0 would say the best of it.
var (
	descBuild     = desc("build_info", "Always 1; the version is a label.", "version")
	descStatus    = desc("status_available", "1 when there is a status to show, else 0.")
	descObserved  = desc("last_observation_timestamp_seconds", "When the observation that is shown began, in Unix time. The heartbeat of the controller.")
	descObsAge    = desc("observation_age_seconds", "How long ago the observation that is shown began.")
	descComplete  = desc("observation_complete", "1 when a primary and every member answered in it, else 0.")
	descCycle     = desc("cycles_total", "Cycles of the leading controller since it started.")
	descLeader    = desc("leader_info", "Always 1; the leading controller is a label.", "leader")
	descEpoch     = desc("leader_epoch", "The fencing number of the leadership.")
	descPrimary   = desc("primary_info", "Always 1; the primary is a label. Absent while there is none.", "node")
	descTimeline  = desc("primary_timeline", "The primary's timeline.")
	descUp        = desc("member_up", "1 when the member answered, else 0.", "node")
	descVerdict   = desc("mirror_verdict", "1 for the verdict that the pair of slot and standby has, 0 for the others.", "slot", "database", "standby", "verdict")
	descReason    = desc("mirror_reason", "Always 1; why the pair is not SAFE is a label. Absent for what is SAFE.", "slot", "database", "standby", "reason")
	descSince     = desc("mirror_verdict_age_seconds", "For how long the pair has had its verdict.", "slot", "database", "standby")
	descLag       = desc("mirror_lag_bytes", "How far the mirror's confirmed_flush_lsn is behind the slot's. Absent without a mirror.", "slot", "database", "standby")
	descProof     = desc("mirror_proof_age_seconds", "How long ago the mirror was last seen proven and protected. Absent without a proof.", "slot", "database", "standby")
	descCondition = desc("condition", "Always 1 while the condition holds.", "code", "subject", "severity")
)

// states are the verdicts that descVerdict knows.
var states = []plan.State{plan.Safe, plan.Pending, plan.Unsafe, plan.Unknown, plan.Lost}

// collector makes samples of the status of the moment in which it is asked.
type collector struct {
	opts   Options
	source Source
}

// Describe names none: which samples there are depends on the cluster.
func (c collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect sends the samples.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	out := sink{ch}
	out.gauge(descBuild, 1, c.opts.Version)
	s, ok := c.source.Status()
	out.flag(descStatus, ok)
	if !ok {
		return
	}
	now := c.opts.Now()
	if !s.ObservedAt.IsZero() {
		out.gauge(descObserved, float64(s.ObservedAt.UnixMilli())/1000)
		out.gauge(descObsAge, age(now, s.ObservedAt))
	}
	out.flag(descComplete, s.Complete)
	out.send(descCycle, prometheus.CounterValue, float64(s.Cycle))
	if s.Leader.Name != "" {
		out.gauge(descLeader, 1, s.Leader.Name)
		out.gauge(descEpoch, float64(s.Leader.Epoch))
	}
	if s.Primary != nil {
		out.gauge(descPrimary, 1, s.Primary.Node)
		out.gauge(descTimeline, float64(s.Primary.Timeline))
	}
	for _, m := range s.Members {
		out.flag(descUp, m.Role != "unknown", m.Node)
	}
	for _, slot := range s.Slots {
		for _, pair := range slot.Standbys {
			out.pair(now, slot, pair)
		}
	}
	for _, f := range s.Conditions {
		out.gauge(descCondition, 1, f.Code, f.Subject, string(f.Severity))
	}
}

// sink sends samples; a label that is not UTF-8 (a database's name may be in
// any encoding) is repaired rather than failing the scrape.
type sink struct{ ch chan<- prometheus.Metric }

func (o sink) send(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "\ufffd")
	}
	m, err := prometheus.NewConstMetric(d, kind, v, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d, err)
	}
	o.ch <- m
}

func (o sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	o.send(d, prometheus.GaugeValue, v, labels...)
}

func (o sink) flag(d *prometheus.Desc, v bool, labels ...string) {
	n := 0.0
	if v {
		n = 1
	}
	o.gauge(d, n, labels...)
}

func (o sink) pair(now time.Time, slot status.Slot, p status.Standby) {
	labels := func(more ...string) []string { return append([]string{slot.Name, slot.Database, p.Node}, more...) }
	for _, state := range states {
		o.flag(descVerdict, p.Verdict == state, labels(string(state))...)
	}
	if p.Reason != "" {
		o.gauge(descReason, 1, labels(string(p.Reason))...)
	}
	if !p.Since.IsZero() {
		o.gauge(descSince, age(now, p.Since), labels()...)
	}
	present(p.LagBytes, func(v int64) { o.gauge(descLag, float64(v), labels()...) })
	present(p.ProofAge, func(v float64) { o.gauge(descProof, v, labels()...) })
}

func present[T any](o cluster.Opt[T], f func(T)) {
	if o.OK {
		f(o.V)
	}
}

// age is never negative: clocks differ.
func age(now, then time.Time) float64 { return max(0, now.Sub(then).Seconds()) }

// requests counts answers by path and code.
type requests struct{ total *prometheus.CounterVec }

// count wraps all. A path that is not a route counts as "other", so that a
// scanner cannot make series without end.
func (q requests) count(all http.Handler, routes map[string]route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if _, ok := routes[path]; !ok {
			path = "other"
		}
		seen := &recorder{ResponseWriter: w, code: http.StatusOK}
		all.ServeHTTP(seen, r)
		q.total.WithLabelValues(path, strconv.Itoa(seen.code)).Inc()
	})
}

// recorder remembers the code.
type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

// Unwrap lets http.MaxBytesReader and others reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// newMetrics serves a registry of this server's own: what other packages put into
// the global one is none of ours.
func newMetrics(o Options, source Source) (http.Handler, requests) {
	q := requests{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "slotkeeper_http_requests_total",
		Help: "Answered HTTP requests, by path and code.",
	}, []string{"path", "code"})}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collector{o, source},
		q.total,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}), q
}
