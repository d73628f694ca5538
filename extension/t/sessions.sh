# Sessions that stay, and catalog rows that are outdated before them.

# outdate NODE: slot cdc there, and catalog rows that died after it began
outdate() {
	q "$1" "CREATE TABLE t (id int)" >/dev/null
	slot "$1" cdc
	q "$1" "INSERT INTO t SELECT generate_series(1, 10)" "ALTER TABLE t ADD COLUMN b text" \
		"INSERT INTO t SELECT i, 'b' FROM generate_series(11, 20) i" "ALTER TABLE t DROP COLUMN id" "INSERT INTO t VALUES ('b')" >/dev/null
	q "$1" "DO \$\$ BEGIN FOR i IN 1..300 LOOP EXECUTE 'CREATE TABLE churn (a int, b int)'; COMMIT; EXECUTE 'DROP TABLE churn'; COMMIT; END LOOP; END \$\$" >/dev/null
}

# Up to 13 there is nothing to be tried.
remember_or_end() {
	if [ "$(q a "SHOW server_version_num")" -lt 140000 ]; then
		echo "ok: sessions of this major remember nothing"
		exit 0
	fi
}

# session NAME: psql on b that stays, as NAME; ask NAME SQL waits for its answer
session() {
	local in="$WORK/$1.in"
	mkfifo "$in"
	PGAPPNAME=$1 psql -X -At -h "$WORK/nodes/b" -p "$PORT" -U postgres -d postgres <"$in" >"$WORK/$1.out" 2>&1 &
	pids[$1]=$!
	exec {fds[$1]}>"$in"
	ask "$1" "SET enable_seqscan = off; SET enable_bitmapscan = off"
	look_around "$1"
}
declare -A fds pids
asked=0
ask() {
	asked=$((asked + 1))
	echo "$2; SELECT 'answered $asked';" >&"${fds[$1]}"
	while ! grep -q "^answered $asked\$" "$WORK/$1.out"; do
		kill -0 "${pids[$1]}" || { cat "$WORK/$1.out"; return 1; }
	done
}
look_around() {
	ask "$1" "SELECT count(*) FROM pg_class WHERE relname IN ('churn', 't'); SELECT count(*) FROM pg_attribute WHERE attrelid > 16000; SELECT count(*) FROM pg_class WHERE oid > 0"
}
leave() {
	echo '\q' >&"${fds[$1]}" # its end of the pipe is not the only one
	exec {fds[$1]}>&-
	wait "${pids[$1]}"
}
