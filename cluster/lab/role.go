package lab

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNoExtension says that the server does not find the extension's files.
var ErrNoExtension = errors.New("the extension slotkeeper is not installed in this server: run make extension")

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
		GRANT EXECUTE ON ALL ROUTINES IN SCHEMA slotkeeper TO slotkeeper`)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && (pg.Code == "0A000" || pg.Code == "58P01") {
		return fmt.Errorf("creating the extension: %w (%w)", ErrNoExtension, err)
	}
	if err != nil {
		return fmt.Errorf("setting up the role and the extension slotkeeper: %w", err)
	}
	return nil
}
