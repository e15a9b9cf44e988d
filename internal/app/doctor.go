package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens/internal/clickhouse"
	"github.com/retrylens/retrylens/internal/engine"
)

// ErrUnhealthy is returned by Doctor when a check failed.
var ErrUnhealthy = errors.New("a check failed")

// DoctorOptions say which store is checked.
type DoctorOptions struct {
	Store   StoreOptions
	Streams Streams
	Now     func() time.Time // nil = time.Now
}

// Bounds of the checks.
const (
	lowDisk   = 5 << 30
	noDisk    = 200 << 20
	skewWarns = 2 * time.Second
	skewFails = 5 * time.Minute // records of our clock would be refused soon
)

// doctor writes a line for each check.
type doctor struct {
	o           DoctorOptions
	address     Address
	failed      int
	unreachable error
}

// Doctor checks a store, a line each on Streams.Out: ok, warn or fail, what was
// found and what to do.
func Doctor(ctx context.Context, o DoctorOptions) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	address, err := ParseAddress(o.Store.Address)
	if err != nil {
		return err
	}
	d := &doctor{o: o, address: address}
	d.say("ok", "store", address.String(), "")
	if !address.Embedded() || d.checkInstallation() {
		d.checkStore(ctx)
	}
	switch {
	case d.unreachable != nil:
		return d.unreachable
	case d.failed > 0:
		return fmt.Errorf("%w (%d)", ErrUnhealthy, d.failed)
	}
	return nil
}

func (d *doctor) say(state, what, found, todo string) {
	if state == "fail" {
		d.failed++
	}
	if todo != "" {
		found += "; " + todo
	}
	fmt.Fprintf(d.o.Streams.Out, "%-4s  %-16s %s\n", state, what, strings.ReplaceAll(found, "\n", "; "))
}

// checkInstallation looks at what an embedded engine needs before it runs, and
// tells whether it can be tried.
func (d *doctor) checkInstallation() bool {
	before := d.failed
	if lib, err := engine.FindLibrary(""); err != nil {
		d.say("fail", "library", err.Error(), "")
	} else {
		d.say("ok", "library", lib, "")
	}
	if bin, err := engine.FindBinary(""); err != nil {
		d.say("fail", "engine", err.Error(), "")
	} else {
		d.say("ok", "engine", bin, "")
	}
	return d.checkDirectory() && d.failed == before
}

func (d *doctor) checkDirectory() bool {
	dir := d.address.Dir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		d.say("warn", "directory", dir+" does not exist yet", "ingest import makes it")
		return false
	case err != nil:
		d.say("fail", "directory", err.Error(), "")
		return false
	case !info.IsDir():
		d.say("fail", "directory", dir+" is no directory", "name another one with --store embedded:DIR")
		return false
	case unix.Access(dir, unix.W_OK|unix.X_OK) != nil:
		d.say("fail", "directory", dir+" cannot be written by this user", "run as its owner, or name another one")
		return false
	}
	d.say("ok", "directory", absolute(dir)+" can be written", "")
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err == nil {
		d.judgeDisk(fs.Bavail * uint64(fs.Bsize))
	}
	return true
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (d *doctor) judgeDisk(free uint64) {
	found := fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30))
	switch {
	case free < noDisk:
		d.say("fail", "disk", found, "make room, or inserts will fail")
	case free < lowDisk:
		d.say("warn", "disk", found, "make room, or keep attempts for a shorter time: analyze migrate --retention DAYS")
	default:
		d.say("ok", "disk", found, "")
	}
}

func (d *doctor) checkStore(ctx context.Context) {
	began := time.Now()
	store, err := OpenStore(ctx, d.o.Store)
	if err != nil {
		d.say("fail", "reach", err.Error(), "")
		d.unreachable = err
		return
	}
	defer store.Close()
	d.say("ok", "reach", fmt.Sprintf("answers after %d ms", time.Since(began).Milliseconds()), "")
	if store.Engine != nil {
		if e, err := store.Engine.Endpoint(ctx); err == nil {
			d.say("ok", "port", fmt.Sprintf("native %s, http %s, pid %d", e.TCPAddr, e.HTTPAddr, e.PID), "")
		}
	}
	d.checkServer(ctx, store)
	if d.checkSchema(ctx, store) {
		d.checkTables(ctx, store)
	}
}

func (d *doctor) checkSchema(ctx context.Context, store *Store) bool {
	err := store.SchemaReady(ctx)
	switch {
	case errors.Is(err, clickhouse.ErrSchemaMissing):
		d.say("warn", "schema", "none yet", "run analyze migrate with the same --store")
		return false
	case err != nil:
		d.say("fail", "schema", err.Error(), "")
		return false
	}
	d.say("ok", "schema", "tables are there in database "+store.Database(), "")
	return true
}

func (d *doctor) checkServer(ctx context.Context, s *Store) {
	if v, err := s.Version(ctx); err != nil {
		d.say("fail", "version", err.Error(), "")
	} else {
		d.say("ok", "version", "ClickHouse "+v, "")
	}
	if skew, err := s.Skew(ctx, d.o.Now); err != nil {
		d.say("warn", "clock", "cannot be known: "+err.Error(), "")
	} else {
		d.judgeSkew(skew)
	}
	if d.address.Embedded() {
		return // its disk is ours
	}
	if free, err := s.FreeBytes(ctx); err != nil {
		d.say("warn", "disk", "cannot be known: "+err.Error(), "")
	} else {
		d.judgeDisk(free)
	}
}

func (d *doctor) checkTables(ctx context.Context, s *Store) {
	newest, err := clickhouse.NewestMigration()
	if err != nil {
		d.say("fail", "schema version", err.Error(), "")
		return
	}
	if have, err := s.SchemaVersion(ctx); err != nil {
		d.say("warn", "schema version", "cannot be known: "+err.Error(), "")
	} else {
		d.judgeSchema(have, newest)
	}
	d.checkUse(ctx, s)
}

func (d *doctor) judgeSkew(skew time.Duration) {
	found, abs := fmt.Sprintf("the server is %v ahead of this machine", skew), max(skew, -skew)
	switch {
	case abs > skewFails:
		d.say("fail", "clock", found, "synchronise both clocks")
	case abs > skewWarns:
		d.say("warn", "clock", found, "synchronise both clocks")
	default:
		d.say("ok", "clock", found, "")
	}
}

func (d *doctor) judgeSchema(have, newest int) {
	switch {
	case have < newest:
		d.say("fail", "schema version", fmt.Sprintf("%d, this command needs %d", have, newest), "run analyze migrate with the same --store")
	case have > newest:
		d.say("fail", "schema version", fmt.Sprintf("%d, this command knows %d", have, newest), "upgrade this command")
	default:
		d.say("ok", "schema version", fmt.Sprint(have), "")
	}
}

func (d *doctor) checkUse(ctx context.Context, s *Store) {
	if kept, err := s.Retention(ctx); err != nil {
		d.say("warn", "retention", "cannot be known: "+err.Error(), "")
	} else {
		d.say("ok", "retention", fmt.Sprintf("%d days", int(kept.Hours()/24)), "")
	}
	switch may, err := s.MayInsert(ctx); {
	case err != nil:
		d.say("warn", "permission", "to insert cannot be known: "+err.Error(), "")
	case !may:
		d.say("warn", "permission", "this user may read, not insert", "for ingest grant INSERT, or use another user")
	default:
		d.say("ok", "permission", "to insert is there", "")
	}
}
