-- A slot that the server's own worker is to copy; up to 16 there is none (failover_1.out).
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_failover', 'pgoutput', false, false, true);
SELECT name, failover, synced, saved FROM slotkeeper.slots() WHERE name = 'rg_failover';
SELECT count(pg_drop_replication_slot(name)) FROM slotkeeper.slots() WHERE name = 'rg_failover';
