package host

import (
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"

	"github.com/retrylens/retrylens/internal/engine/chdb"
	"github.com/retrylens/retrylens/internal/engine/datadir"
)

//go:embed config.xml.tmpl
var configText string

//go:embed users.xml.tmpl
var usersText string

// tableEngines are those that the owner may use: none reaches out of the engine
// but Distributed, which also needs the grant for REMOTE.
var tableEngines = []string{
	"MergeTree", "ReplacingMergeTree", "SummingMergeTree", "AggregatingMergeTree", "CollapsingMergeTree",
	"VersionedCollapsingMergeTree", "CoalescingMergeTree", "Memory", "Null", "Log", "TinyLog", "StripeLog",
	"Set", "Join", "Buffer", "Merge", "Dictionary", "Distributed", "GenerateRandom",
}

// config is what the two templates are filled with.
type config struct {
	ServerLog   string
	UsersFile   string
	FilesDir    string
	MemoryBytes int64
	Pool        int // threads that merge and mutate
	Extra       string

	Database                    string
	User, UserSHA256            string
	Viewer, ViewerSHA256        string
	TableEngines                []string
	ListenQuota                 int
	ViewerMemory, SessionMemory int64
}

// writeConfig makes the directories that ClickHouse needs and writes its config.
// It returns the path of config.xml.
func writeConfig(d datadir.Dir, o Options) (string, error) {
	for _, dir := range []string{d.ConfigDir(), d.ServerLogDir(), d.FilesDir(), d.StoreDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
	}
	if err := persistSystem(d); err != nil {
		return "", err
	}
	c, err := newConfig(d, o)
	if err != nil {
		return "", err
	}
	if err := render(c.UsersFile, usersText, c); err != nil {
		return "", err
	}
	file := filepath.Join(d.ConfigDir(), "config.xml")
	return file, render(file, configText, c)
}

// removeConfig removes what writeConfig wrote once the engine has read it: extra.xml
// may have passwords of other engines in it, and file() could read them there.
func removeConfig(d datadir.Dir) error { return os.RemoveAll(d.ConfigDir()) }

func newConfig(d datadir.Dir, o Options) (config, error) {
	pw, err := d.Passwords()
	if err != nil {
		return config{}, err
	}
	extra, err := extraConfig(d, o)
	return config{
		ServerLog:     filepath.Join(d.ServerLogDir(), "server.log"),
		UsersFile:     filepath.Join(d.ConfigDir(), "users.xml"),
		FilesDir:      d.FilesDir() + "/",
		MemoryBytes:   o.MemoryBytes,
		Pool:          min(max(2, runtime.NumCPU()), 8),
		Extra:         extra,
		Database:      datadir.Database,
		User:          datadir.User,
		UserSHA256:    hexSHA256(pw.User),
		Viewer:        datadir.Viewer,
		ViewerSHA256:  hexSHA256(pw.Viewer),
		TableEngines:  tableEngines,
		ListenQuota:   chdb.Listens,
		ViewerMemory:  2 << 30,
		SessionMemory: 64 << 20,
	}, err
}

func hexSHA256(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// extraConfig is DIR/extra.xml and the file of --config, which must be there.
func extraConfig(d datadir.Dir, o Options) (string, error) {
	b, err := os.ReadFile(d.ExtraConfigFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if o.ConfigFile == "" {
		return string(b), nil
	}
	c, err := os.ReadFile(o.ConfigFile)
	return string(b) + "\n" + string(c), err
}

// render writes a template to a file that only we may read.
func render(name, text string, c config) error {
	t, err := template.New(filepath.Base(name)).Funcs(template.FuncMap{"xml": escape}).Parse(text)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, c); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(b.String()), 0o600)
}

func escape(s string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(s))
	return b.String(), err
}

// persistSystem makes database system an Atomic one on disk.  In clickhouse-local
// it is a Memory database by default: the system logs are then lost at a stop, and
// after a kill -9 the directories they leave make every flush of a log fail
// with "Code: 57 ... Directory for table data ... already exists".
func persistSystem(d datadir.Dir) error {
	f := filepath.Join(d.StoreDir(), "metadata", "system.sql")
	if _, err := os.Stat(f); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
		return err
	}
	s := fmt.Sprintf("ATTACH DATABASE _ UUID '%s'\nENGINE = Atomic\n", newUUID())
	return os.WriteFile(f, []byte(s), 0o600)
}

// newUUID is a random one, version 4.
func newUUID() string {
	var u [16]byte
	rand.Read(u[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}
