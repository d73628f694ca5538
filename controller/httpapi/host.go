package httpapi

import (
	"net"
	"net/http"
	"strings"
)

// hostOK reports whether a request was meant for this listener. One on the
// loopback interface without user and password trusts whoever is on this
// machine; a web page in a browser there is not whoever: its own name may be
// made to lead to 127.0.0.1 (DNS rebinding), and then it could read everything.
// The Host header tells: it has the page's name. Where a password is asked for,
// or the listener is open to the network, the name proves nothing and may be any.
func (o Options) hostOK(r *http.Request) bool {
	own := hostOf(o.Listen)
	if o.Username != "" || !loopback(own) || r.Host == "" { // no browser leaves it out
		return true
	}
	asked := hostOf(r.Host)
	return loopback(asked) || strings.EqualFold(asked, own)
}

// hostOf takes the port off, and the dot that ends a full name.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	return strings.TrimSuffix(host, ".")
}

// loopback: names under localhost are never asked of a name server (RFC 6761).
func loopback(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	host = strings.ToLower(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
