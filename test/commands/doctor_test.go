package commands

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/slotkeeper/slotkeeper/cluster/lab"
	"github.com/slotkeeper/slotkeeper/test/harness"
)

type finding struct {
	Code, Severity, Subject, On, Database string
	SQL                                   []string
}

// patient is a scene that a doctor looks at.
type patient struct{ *harness.Scene }

// doctor wants exactly these findings, "code subject" each, and the exit code.
func (p patient) doctor(config string, code int, want ...string) []finding {
	p.T.Helper()
	r := harness.Command(p.T, p.Ctx, "doctor", "--config", config, "-o", "json")
	var doc struct{ Findings []finding }
	if err := json.Unmarshal([]byte(r.Stdout), &doc); err != nil {
		p.T.Fatalf("doctor ends with %d: %v\n%s%s", r.Code, err, r.Stdout, r.Stderr)
	}
	got := []string{}
	for _, f := range doc.Findings {
		got = append(got, f.Code+" "+f.Subject)
	}
	slices.Sort(got)
	slices.Sort(want)
	if r.Code != code || !slices.Equal(got, want) {
		p.T.Errorf("doctor ends with %d, want %d, and finds\n%q, want\n%q\n%s%s", r.Code, code, got, want, r.Stdout, r.Stderr)
	}
	return doc.Findings
}

// obey runs the SQL of the findings of one code, where they say.
func (p patient) obey(findings []finding, code string) {
	p.T.Helper()
	nodes := map[string]*lab.Node{}
	for _, n := range p.Nodes() {
		nodes[n.Name()] = n
	}
	done := map[string]bool{}
	for _, f := range findings {
		for _, sql := range f.SQL {
			if f.Code == code && !done[f.On+f.Database+sql] {
				p.OK(nodes[f.On].DB(f.Database).Exec(p.Ctx, sql))
			}
			done[f.On+f.Database+sql] = done[f.On+f.Database+sql] || f.Code == code
		}
	}
	p.OK(p.B.WaitCatchup(p.Ctx, p.A))
}

// The SQL that doctor gives mends what it finds, step by step, from a role that
// may do nothing in a database that has nothing, to a running controller.
func TestDoctorsAdviceHelps(t *testing.T) {
	p := patient{harness.New(t, harness.Options{OnB: lab.StandbyOptions{Settings: map[string]string{"wal_level": "replica"}}})}
	p.Logical(p.A, "cdc")
	p.Exec(p.A, `CREATE ROLE "Plain one" LOGIN`)
	p.Exec(p.A, `CREATE DATABASE "My ""DB"`)
	p.OK(p.B.WaitCatchup(p.Ctx, p.A))
	rest := []string{"wal_level b", "feedback_off b", "wal_unbounded b", "controller_absent controller"}
	and := func(more ...string) []string { return append(more, rest...) }

	config := p.Config(harness.Postgres{User: "Plain one", Database: `My "DB`})
	found := p.doctor(config, 3, and("extension_unavailable a", "extension_unavailable b", "no_privilege a", "no_privilege b")...)
	p.obey(found, "extension_unavailable")
	p.doctor(config, 3, and("hold_missing a")...) // its objects come with all grants
	p.Exec(p.A, `ALTER ROLE "Plain one" NOREPLICATION`)
	p.OK(p.A.DB(`My "DB`).Exec(p.Ctx, `REVOKE EXECUTE ON FUNCTION slotkeeper.apply FROM "Plain one"`))
	p.OK(p.B.WaitCatchup(p.Ctx, p.A))
	found = p.doctor(config, 3, and("no_privilege a", "no_privilege b")...)
	p.obey(found, "no_privilege")
	found = p.doctor(config, 3, and("hold_missing a")...)

	p.obey(found, "feedback_off")
	p.obey(found, "wal_level")
	p.OK(p.B.Set(p.Ctx, map[string]string{"max_slot_wal_keep_size": "1GB"}))
	p.OK(p.B.Restart(p.Ctx))
	p.OK(p.B.WaitStreaming(p.Ctx))
	p.doctor(config, 0, "controller_absent controller", "hold_missing a")

	p.Run()
	p.Safe([]string{"cdc"})
	config = p.Daemon.Config()
	p.doctor(config, 0)

	// What a controller leaves behind goes on costing.
	p.StopDaemon()
	p.Exec(p.B, "SELECT pg_drop_replication_slot('cdc'), pg_create_physical_replication_slot('cdc')")
	p.Exec(p.A, "SELECT pg_drop_replication_slot('slotkeeper_hold')")
	p.doctor(config, 3, "controller_absent controller", "hold_missing a", "not_ours b/cdc")
	p.OK(p.B.StopFast(p.Ctx))
	p.doctor(config, 4, "controller_absent controller", "hold_missing a", "unreachable b")
}

func TestDoctorRefusesAWrongConfiguration(t *testing.T) {
	r := harness.Command(t, t.Context(), "doctor", "--config", "nowhere.yaml")
	if r.Code != 2 || r.Stdout != "" {
		t.Errorf("ends with %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
}
