package lab

import (
	"context"
	"fmt"
)

// RoleName is the role with which the controller works in the lab: no superuser.
const RoleName = "slotkeeper"

// SetupRole makes, on a primary, what the controller needs in the database
// postgres: the extension (its files must be installed) and a role that may
// replicate, monitor and call it. Standbys get both by replay.
func SetupRole(ctx context.Context, primary *Node) error {
	err := primary.Exec(ctx, `
		CREATE EXTENSION IF NOT EXISTS slotkeeper;
		DO $$ BEGIN
			IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'slotkeeper') THEN
				CREATE ROLE slotkeeper LOGIN REPLICATION;
			END IF;
		END $$;
		GRANT pg_monitor TO slotkeeper;
		GRANT USAGE ON SCHEMA slotkeeper TO slotkeeper;
		GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA slotkeeper TO slotkeeper`)
	if err != nil {
		return fmt.Errorf("setting up the role and the extension slotkeeper (make extension installs its files): %w", err)
	}
	return nil
}
