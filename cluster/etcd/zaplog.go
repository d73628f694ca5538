package etcd

import (
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapTo gives etcd a zap logger that writes to log, some levels lower: etcd
// counts as info and warnings what concerns nobody here. closing says that etcd
// is being stopped; nil for one that never is.
func zapTo(log hclog.Logger, closing *atomic.Bool) *zap.Logger {
	return zap.New(&hclogCore{log: log.Named("etcd"), closing: closing})
}

type hclogCore struct {
	log     hclog.Logger
	fields  []zapcore.Field
	closing *atomic.Bool
}

// servingEnded is what etcd logs as an error for each of its listeners when
// they are closed, which at a stop is what was asked for (server/v3/embed/etcd.go).
const servingEnded = "setting up serving from embedded etcd failed."

// storageVersion is what etcd logs as an error while its store has no entry yet, and
// tries again by itself (server/v3/etcdserver/version/monitor.go).
const storageVersion = "failed to update storage version"

func hclogLevel(l zapcore.Level) hclog.Level {
	switch {
	case l >= zapcore.DPanicLevel:
		return hclog.Error
	case l >= zapcore.ErrorLevel:
		return hclog.Warn
	case l >= zapcore.WarnLevel:
		return hclog.Debug
	}
	return hclog.Trace
}

func (c *hclogCore) Enabled(l zapcore.Level) bool {
	return l >= zapcore.InfoLevel && c.log.GetLevel() <= hclogLevel(l)
}

func (c *hclogCore) With(fields []zapcore.Field) zapcore.Core {
	return &hclogCore{log: c.log, closing: c.closing, fields: append(append([]zapcore.Field{}, c.fields...), fields...)}
}

func (c *hclogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *hclogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if e.Message == servingEnded && c.closing != nil && c.closing.Load() {
		return nil
	}
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(append([]zapcore.Field{}, c.fields...), fields...) {
		f.AddTo(enc)
	}
	args := make([]any, 0, 2*len(enc.Fields))
	for k, v := range enc.Fields {
		args = append(args, k, v)
	}
	level := hclogLevel(e.Level)
	if e.Message == storageVersion {
		level = hclog.Debug
	}
	c.log.Log(level, e.Message, args...)
	return nil
}

func (c *hclogCore) Sync() error { return nil }
