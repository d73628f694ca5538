//go:build patroni

package patroni

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/controller/switchover"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

// restUser and restSecret guard Patroni's REST API. The password has what URLs and
// format strings trip over.
const (
	restUser   = "admin"
	restSecret = `p:a%s@s"w%`
)

// C38: an API that wants a name, a password and a certificate, with an IPv6 address.
// Whatever is wrong, the command ends with a code and a hint, the cluster is as it
// was, and the password stands nowhere; and with all of it right it works.
func TestC38PatronisOwnAuthenticationAndTLS(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "authority") // of the servers' user as well
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	authority, err := lab.NewAuthority(folder)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := lab.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, issue := range []error{authority.Issue("member"), authority.Issue("client"), stranger.Issue("client")} {
		if issue != nil {
			t.Fatal(issue)
		}
	}
	for _, name := range []string{"ca.pem", "member.pem", "member.key"} {
		if err := os.Chmod(authority.File(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	own := map[string]any{"certfile": authority.File("member.pem"), "keyfile": authority.File("member.key")}
	s := begin(t, map[string]any{"ignore_slots": covering()}, func(o *lab.PatroniOptions) {
		o.IPv6 = true
		o.REST = map[string]any{
			"certfile": own["certfile"], "keyfile": own["keyfile"], "cafile": authority.File("ca.pem"), "verify_client": "required",
			"authentication": map[string]any{"username": restUser, "password": restSecret},
		}
		o.CTL = map[string]any{"cacert": authority.File("ca.pem"), "certfile": own["certfile"], "keyfile": own["keyfile"]}
	})
	s.run()
	s.safe("cdc")
	from := s.leader()
	if url := from.URL(); !strings.HasPrefix(url, "https://[::1]:") {
		t.Fatal(url)
	}
	config, err := os.ReadFile(s.Daemon.Config())
	s.OK(err)
	password := func(text string) string {
		file := filepath.Join(t.TempDir(), "password")
		s.OK(os.WriteFile(file, []byte(text+"\n"), 0o600))
		return file
	}
	right, wrong := password(restSecret), password(restSecret+"x")
	with := func(rest string) string {
		file := filepath.Join(t.TempDir(), "slotkeeper.yaml")
		text := strings.Replace(string(config), "{source: patroni}", "{source: patroni, patroni: {rest: {"+rest+"}}}", 1)
		s.OK(os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	ca := "ca_file: " + authority.File("ca.pem")
	pair := fmt.Sprintf("cert_file: %s, key_file: %s", authority.File("client.pem"), authority.File("client.key"))
	user := "username: " + restUser + ", password_file: "
	for name, c := range map[string]struct {
		rest string
		code int
		says []string
	}{
		"no name":               {ca + ", " + pair, 1, []string{"HTTP status 401", "cluster.patroni.rest.username"}},
		"wrong password":        {ca + ", " + pair + ", " + user + wrong, 1, []string{"HTTP status 401", "password_file"}},
		"unknown authority":     {pair + ", " + user + right, 4, []string{"cluster.patroni.rest.ca_file"}},
		"wrong authority":       {"ca_file: " + stranger.File("ca.pem") + ", " + pair + ", " + user + right, 4, []string{"cluster.patroni.rest.ca_file"}},
		"no certificate":        {ca + ", " + user + right, 4, []string{"cluster.patroni.rest.cert_file"}},
		"stranger certificate":  {ca + fmt.Sprintf(", cert_file: %s, key_file: %s, ", stranger.File("client.pem"), stranger.File("client.key")) + user + right, 4, []string{"certificate"}},
		"no file of a password": {ca + ", " + pair + ", " + user + "/nowhere", 2, []string{"/nowhere"}},
	} {
		r := harness.Command(t, s.Ctx, "switchover", "--yes", "--config", with(c.rest))
		if r.Code != c.code {
			t.Errorf("%s: %+v", name, r)
		}
		for _, says := range c.says {
			if !strings.Contains(r.Stderr, says) {
				t.Errorf("%s: it does not say %q: %+v", name, says, r)
			}
		}
		s.unspoken(name, r)
		if s.leader() != from || s.requests() != 0 {
			t.Fatalf("%s: Patroni was asked %d times, %s leads", name, s.requests(), s.leader().Name())
		}
		s.forgotten()
	}
	r := harness.Command(t, s.Ctx, "switchover", "--yes", "-o", "json", "--config", with(ca+", "+pair+", "+user+right))
	doc := s.document(r)
	if r.Code != 0 || doc.Outcome != switchover.OutcomeDone {
		t.Fatalf("%+v", r)
	}
	s.unspoken("done", r)
	s.done(doc, from.Name(), doc.To)
}

// unspoken wants no password in what a command says, whole or in a part.
func (s *scene) unspoken(name string, r harness.Result) {
	s.T.Helper()
	for _, part := range []string{restSecret, `a%s@s`, `p%3Aa`, "YWRtaW46"} { // also in URLs, and in base64
		if strings.Contains(r.Stdout+r.Stderr, part) {
			s.T.Errorf("%s: it says the password: %+v", name, r)
		}
	}
}
