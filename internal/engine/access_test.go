package engine_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/enginetest"
)

// Codes of ClickHouse.
const (
	accessDenied = 497
	readOnly     = 164
)

func requireDenied(t *testing.T, err error, sql string) {
	t.Helper()
	var ex *clickhouse.Exception
	if !errors.As(err, &ex) || (ex.Code != accessDenied && ex.Code != readOnly) {
		t.Errorf("%s\n  = %v, want code %d or %d", sql, err, accessDenied, readOnly)
	}
}

func TestOwnerReachesNothingOutside(t *testing.T) {
	c := enginetest.Shared(t)
	conn := connect(t, c)
	for _, sql := range []string{
		"SELECT * FROM file('/etc/hostname', 'LineAsString')",
		"INSERT INTO FUNCTION file('/tmp/x.csv', 'CSV', 'a UInt8') SELECT 1",
		"SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
		"SELECT * FROM s3('http://127.0.0.1:1/bucket/k', 'LineAsString')",
		"SELECT * FROM mysql('127.0.0.1:1', 'd', 't', 'u', 'p')",
		"SELECT * FROM postgresql('127.0.0.1:1', 'd', 't', 'u', 'p')",
		"CREATE TABLE retrylens.f (a String) ENGINE = File(CSV, '/tmp/x.csv')",
		"CREATE TABLE retrylens.u (a String) ENGINE = URL('http://127.0.0.1:1/', CSV)",
		"CREATE DATABASE elsewhere",
		"DROP DATABASE system",
		"BACKUP TABLE system.one TO File('/tmp/x')",
		"CREATE USER mallory",
		"GRANT FILE ON *.* TO retrylens",
		"SYSTEM SHUTDOWN",
		"SYSTEM STOP LISTEN HTTP",
	} {
		requireDenied(t, conn.Exec(testContext(t), sql), sql)
	}
}

// TestFilesOfOthers: file() asks for no grant, so the kernel must say no.
func TestFilesOfOthers(t *testing.T) {
	t.Setenv("RETRYLENS_TEST_SECRET", "s3cret-of-the-shell")
	dir := t.TempDir()
	c := enginetest.Start(t, enginetest.WithDir(dir), enginetest.WithConfig("<macros><shard>1</shard></macros>"))
	ep, err := c.ViewerEndpoint(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	viewer := connectAs(t, c, ep)
	for _, name := range []string{
		"/etc/hostname", "/etc/passwd", os.Args[0],
		filepath.Join(dir, "password"), filepath.Join(dir, "viewer.password"),
		filepath.Join(dir, "extra.xml"), filepath.Join(dir, "config/config.xml"),
	} {
		var got string
		err := viewer.QueryRow(testContext(t), "SELECT file('"+name+"')").Scan(&got)
		if err == nil {
			t.Errorf("file(%q) was read: %d bytes", name, len(got))
		}
	}
	if env := scalar[string](t, viewer, "SELECT file('/proc/self/environ')"); strings.Contains(env, "s3cret") {
		t.Error("the engine has the environment of its client's shell")
	}
}

func TestOwnerMayWhatTheStoreNeeds(t *testing.T) {
	conn := connect(t, enginetest.Shared(t))
	for _, sql := range []string{
		"CREATE DATABASE retrylens_access",
		"CREATE TABLE retrylens_access.a (n UInt64, s String, at DateTime64(3)) ENGINE = MergeTree ORDER BY n TTL toDateTime(at) + INTERVAL 30 DAY",
		"CREATE TABLE retrylens_access.b AS retrylens_access.a ENGINE = ReplacingMergeTree ORDER BY n",
		"CREATE MATERIALIZED VIEW retrylens_access.m TO retrylens_access.b AS SELECT * FROM retrylens_access.a",
		"INSERT INTO retrylens_access.a SELECT number, 'x', now64(3) FROM numbers(10)",
		"ALTER TABLE retrylens_access.a UPDATE s = 'y' WHERE n < 5 SETTINGS mutations_sync = 1",
		"ALTER TABLE retrylens_access.a DELETE WHERE n = 0 SETTINGS mutations_sync = 1",
		"DELETE FROM retrylens_access.a WHERE n = 1",
		"ALTER TABLE retrylens_access.a ADD COLUMN c UInt8",
		"OPTIMIZE TABLE retrylens_access.b FINAL",
		"SYSTEM STOP MERGES retrylens_access.b",
		"SYSTEM START MERGES retrylens_access.b",
		"SYSTEM FLUSH LOGS",
		"CREATE DICTIONARY retrylens_access.d (n UInt64, s String) PRIMARY KEY n SOURCE(NULL()) LAYOUT(FLAT()) LIFETIME(0)",
		"SELECT dictGet('retrylens_access.d', 's', toUInt64(1))",
		"SELECT count() FROM system.query_log",
		"SELECT count() FROM system.part_log",
		"SELECT * FROM numbers(3)",
		"EXCHANGE TABLES retrylens_access.a AND retrylens_access.b",
		"TRUNCATE TABLE retrylens_access.a",
		"DROP DATABASE retrylens_access",
	} {
		exec(t, conn, sql)
	}
}

func TestDictionaryReachesNoFile(t *testing.T) {
	conn := connect(t, enginetest.Shared(t))
	exec(t, conn, "CREATE DATABASE retrylens_dict")
	err := conn.Exec(testContext(t), "CREATE DICTIONARY retrylens_dict.d (n UInt64, s String) PRIMARY KEY n "+
		"SOURCE(FILE(PATH '/etc/hostname' FORMAT 'CSV')) LAYOUT(FLAT()) LIFETIME(0)")
	if err == nil {
		err = conn.Exec(testContext(t), "SELECT dictGet('retrylens_dict.d', 's', toUInt64(1))")
	}
	if err == nil {
		t.Error("a dictionary read a file outside of user_files_path")
	}
	exec(t, conn, "DROP DATABASE retrylens_dict")
}

func TestViewerReadsOnly(t *testing.T) {
	c := enginetest.Shared(t)
	owner := connect(t, c)
	exec(t, owner, "CREATE TABLE IF NOT EXISTS seen (n UInt64) ENGINE = MergeTree ORDER BY n")
	exec(t, owner, "INSERT INTO seen VALUES (1)")
	exec(t, owner, "CREATE DATABASE IF NOT EXISTS retrylens_hidden")
	exec(t, owner, "CREATE TABLE IF NOT EXISTS retrylens_hidden.t (n UInt64) ENGINE = MergeTree ORDER BY n")
	ep, err := c.ViewerEndpoint(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	viewer := connectAs(t, c, ep)
	for _, sql := range []string{
		"SELECT max(n) FROM retrylens.seen", // with a deadline, so with a setting
		"SELECT sum(rows) FROM system.parts WHERE database = 'retrylens'",
		"SELECT value FROM system.metrics LIMIT 1",
	} {
		exec(t, viewer, sql)
	}
	for _, sql := range []string{
		"INSERT INTO retrylens.seen SELECT 2",
		"CREATE TABLE retrylens.x (n UInt64) ENGINE = MergeTree ORDER BY n",
		"ALTER TABLE retrylens.seen DELETE WHERE 1",
		"DROP TABLE retrylens.seen",
		"TRUNCATE TABLE retrylens.seen",
		"SELECT * FROM retrylens_hidden.t",
		"SELECT * FROM system.users",
		"SELECT * FROM file('/etc/hostname', 'LineAsString')",
		"SELECT * FROM remote('127.0.0.1', 'system.one')",
		"SET readonly = 0",
	} {
		requireDenied(t, viewer.Exec(testContext(t), sql), sql)
	}
}

// TestDefaultUserIsPowerless: it has no password, as the engine's own session must
// log in as it.
func TestDefaultUserIsPowerless(t *testing.T) {
	c := enginetest.Shared(t)
	ep := endpointOf(t, c)
	for _, sql := range []string{"SYSTEM STOP LISTEN HTTP", "SELECT count() FROM system.tables", "SELECT * FROM retrylens.seen"} {
		resp, err := http.Post("http://"+ep.HTTPAddr+"/", "text/plain", strings.NewReader(sql))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Errorf("default may %s", sql)
		}
	}
	if got := scalar[uint8](t, connect(t, c), "SELECT 1"); got != 1 {
		t.Errorf("SELECT 1 = %d", got)
	}
}

func TestNothingIsReadableByOthers(t *testing.T) {
	o := enginetest.Options(t)
	o.Dir = filepath.Join(o.Dir, "made", "by", "us")
	enginetest.Start(t, enginetest.WithDir(o.Dir))
	requireMode(t, o.Dir, 0o700)
	for _, name := range []string{"password", "viewer.password", "engine.json", "engine.log"} {
		requireMode(t, filepath.Join(o.Dir, name), 0o600)
	}
	pw, err := os.ReadFile(filepath.Join(o.Dir, "password"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"engine.json", "engine.log"} {
		b, err := os.ReadFile(filepath.Join(o.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), strings.TrimSpace(string(pw))) {
			t.Errorf("%s has the password in it", name)
		}
	}
}

func requireMode(t *testing.T, name string, want fs.FileMode) {
	t.Helper()
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if got := fi.Mode().Perm(); got != want {
		t.Errorf("mode of %s is %04o, want %04o", name, got, want)
	}
}

func TestPasswordThatOthersMayReadIsRefused(t *testing.T) {
	o := enginetest.Options(t)
	name := filepath.Join(o.Dir, "password")
	if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := engine.Open(testContext(t), o)
	if err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("Open = %v, want one that says what to do", err)
	}
}
