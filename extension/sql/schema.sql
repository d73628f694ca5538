-- A schema slotkeeper that was there before: it must be nobody's but superusers'.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS slotkeeper CASCADE;
DROP SCHEMA IF EXISTS slotkeeper CASCADE;
CREATE ROLE regress_slotkeeper_other;

-- somebody else's
CREATE SCHEMA slotkeeper AUTHORIZATION regress_slotkeeper_other;
CREATE EXTENSION slotkeeper;
-- nor by operators of theirs that would fit better than PostgreSQL's own
SET ROLE regress_slotkeeper_other;
CREATE FUNCTION slotkeeper.never(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION slotkeeper.has_schema_privilege(oid, oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR slotkeeper.= (leftarg = oid, rightarg = oid, function = slotkeeper.never);
RESET ROLE;
CREATE EXTENSION slotkeeper;
DROP SCHEMA slotkeeper CASCADE;

-- one in which somebody, or everybody, may create
CREATE SCHEMA slotkeeper;
GRANT CREATE ON SCHEMA slotkeeper TO regress_slotkeeper_other;
CREATE EXTENSION slotkeeper;
REVOKE CREATE ON SCHEMA slotkeeper FROM regress_slotkeeper_other;
GRANT CREATE ON SCHEMA slotkeeper TO PUBLIC;
CREATE EXTENSION slotkeeper;
REVOKE CREATE ON SCHEMA slotkeeper FROM PUBLIC;

-- as a restored dump leaves it: there, with its grants
GRANT USAGE ON SCHEMA slotkeeper TO regress_slotkeeper_other;
CREATE EXTENSION slotkeeper;
DROP EXTENSION slotkeeper;

-- a superuser's that is not the one who installs
CREATE ROLE regress_slotkeeper_super SUPERUSER;
ALTER SCHEMA slotkeeper OWNER TO regress_slotkeeper_super;
CREATE EXTENSION slotkeeper;

DROP EXTENSION slotkeeper;
DROP SCHEMA slotkeeper;
DROP ROLE regress_slotkeeper_super, regress_slotkeeper_other;
