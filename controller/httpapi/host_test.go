package httpapi

import (
	"context"
	"net/http"
	"testing"
)

// A page whose own name leads to the loopback address (DNS rebinding) gets
// nothing of a listener there that asks for no password.
func TestALoopbackListenerAnswersToItsOwnNamesOnly(t *testing.T) {
	for _, c := range []struct {
		listen, user, host string
		code               int
	}{
		{"127.0.0.1:8009", "", "127.0.0.1:8009", 200},
		{"127.0.0.1:8009", "", "localhost:8009", 200},
		{"127.0.0.1:8009", "", "LocalHost.", 200},
		{"127.0.0.1:8009", "", "keeper.localhost:8009", 200},
		{"127.0.0.1:8009", "", "[::1]:8009", 200},
		{"127.0.0.1:8009", "", "127.9.9.9", 200},
		{"127.0.0.1:8009", "", "", 200},
		{"127.0.0.1:8009", "", "evil.example:8009", 421},
		{"127.0.0.1:8009", "", "localhost.evil.example", 421},
		{"127.0.0.1:8009", "", "evil.example:8009:1", 421},
		{"[::1]:8009", "", "evil.example", 421},
		{"localhost:8009", "", "evil.example", 421},
		{"127.0.0.1:8009", "", "192.0.2.1:8009", 421},
		{"127.0.0.1:8009", "u", "proxy.example", 200},
		{"0.0.0.0:8009", "", "node1.example", 200},
		{":8009", "", "node1.example", 200},
		{"192.0.2.1:8009", "", "node1.example", 200},
	} {
		o := options()
		o.Listen, o.Username, o.Password = c.listen, c.user, "p"
		h := Handler(o, fake{doc: document(), sync: func(context.Context) error { return nil }})
		for path, method := range map[string]string{"/status": http.MethodGet, "/": http.MethodGet, "/metrics": http.MethodGet, "/sync": http.MethodPost, "/liveness": http.MethodGet} {
			w := ask(h, method, path, func(r *http.Request) {
				r.Host = c.host
				r.SetBasicAuth("u", "p")
			})
			if w.Code != c.code {
				t.Errorf("listening on %q, %s %s with Host %q gave %d, want %d", c.listen, method, path, c.host, w.Code, c.code)
			}
		}
	}
}
