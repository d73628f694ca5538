package etcd

import (
	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapTo gives etcd a zap logger that writes to log, some levels lower: etcd
// counts as info and warnings what concerns nobody here.
func zapTo(log hclog.Logger) *zap.Logger {
	return zap.New(&hclogCore{log: log.Named("etcd")})
}

type hclogCore struct {
	log    hclog.Logger
	fields []zapcore.Field
}

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
	return &hclogCore{log: c.log, fields: append(append([]zapcore.Field{}, c.fields...), fields...)}
}

func (c *hclogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *hclogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(append([]zapcore.Field{}, c.fields...), fields...) {
		f.AddTo(enc)
	}
	args := make([]any, 0, 2*len(enc.Fields))
	for k, v := range enc.Fields {
		args = append(args, k, v)
	}
	c.log.Log(hclogLevel(e.Level), e.Message, args...)
	return nil
}

func (c *hclogCore) Sync() error { return nil }
