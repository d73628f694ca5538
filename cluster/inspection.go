package cluster

// Inspection is what a server says of itself and of the role that asks, to any
// role that gets in: it needs neither the extension nor its privileges.
type Inspection struct {
	ServerVersion int               `json:"server_version"` // server_version_num
	InRecovery    bool              `json:"in_recovery"`
	Database      string            `json:"database"`
	Role          string            `json:"role"`
	Script        string            `json:"script"`    // version of the extension's SQL objects in Database, "" for none
	Available     string            `json:"available"` // version that CREATE EXTENSION would make, "" where its files are not installed
	Lacks         []string          `json:"lacks"`     // what the role lacks, in words
	Grants        []string          `json:"grants"`    // the SQL that gives it, for a superuser on the primary in Database; without the extension also what its objects will need
	Settings      map[string]string `json:"settings"`  // pg_settings.setting of those that matter here
	HoldAge       Opt[int64]        `json:"hold_age"`  // of slotkeeper_hold's catalog_xmin, in transactions
}
