package postgres

import (
	"slices"
	"testing"
)

func TestInspectNeedsNoPrivilege(t *testing.T) {
	admin := shared.admin(t, "postgres")
	role(t, admin, "plain one", "")
	o := superuser
	o.User = "plain one"
	s := session(t, shared.conninfo(""), o)
	if _, err := s.Read(patient(t)); Classify(err) != NoPrivilege {
		t.Fatalf("the scene is not set: Read gave %v", err)
	}
	i, err := s.Inspect(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(i.Grants, Grants("plain one")) || len(i.Lacks) != 4 {
		t.Errorf("a plain role lacks %q and needs %q", i.Lacks, i.Grants)
	}
	if i.Role != "plain one" || i.Database != "postgres" || i.InRecovery || i.Script == "" || i.Available == "" || i.ServerVersion < 130000 {
		t.Errorf("got %+v", i)
	}
	if i.Settings["wal_level"] != "logical" || i.Settings["max_slot_wal_keep_size"] != "-1" || i.HoldAge.OK {
		t.Errorf("settings %v, age of the hold %v", i.Settings, i.HoldAge)
	}
	for _, sql := range i.Grants {
		exec1(t, admin, sql)
	}
	if i, err = s.Inspect(patient(t)); err != nil || len(i.Lacks) > 0 || len(i.Grants) > 0 {
		t.Errorf("with the grants it lacks %q and needs %q (%v)", i.Lacks, i.Grants, err)
	}
	if _, err := s.Read(patient(t)); err != nil {
		t.Errorf("with the grants Read gave %v", err)
	}
}

func TestInspectGrantsOnlyWhatIsLacking(t *testing.T) {
	admin := shared.admin(t, "postgres")
	role(t, admin, "nearly", "")
	for _, sql := range Grants("nearly") {
		exec1(t, admin, sql)
	}
	exec1(t, admin, "ALTER ROLE nearly NOREPLICATION")
	o := superuser
	o.User = "nearly"
	i, err := session(t, shared.conninfo(""), o).Inspect(patient(t))
	if err != nil || !slices.Equal(i.Grants, Grants("nearly")[:1]) {
		t.Errorf("needs %q (%v)", i.Grants, err)
	}
}

func TestInspectWithoutTheExtension(t *testing.T) {
	database(t, "bare", false)
	role(t, shared.admin(t, "postgres"), "early", "REPLICATION")
	o := superuser
	o.DBName, o.User = "bare", "early"
	i, err := session(t, shared.conninfo(""), o).Inspect(patient(t))
	if err != nil || i.Script != "" || i.Available == "" {
		t.Fatalf("got %+v (%v)", i, err)
	}
	if !slices.Equal(i.Grants, Grants("early")[1:]) {
		t.Errorf("needs %q, want what the extension's objects will need too", i.Grants)
	}
}
