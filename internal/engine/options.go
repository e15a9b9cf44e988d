package engine

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// Options says which engine to open.  Only Dir must be given.
//
// The fields from HTTPPort on are for an engine that this process starts; one that
// runs already stays as it is.
type Options struct {
	Dir    string       // data directory, created with mode 0700 if missing
	Binary string       // the executable of cmd/engine; "": see FindBinary
	Logger *slog.Logger // nil: slog.Default()

	Library     string        // libchdb.so; "": see LibraryPath
	HTTPPort    int           // 0: a free one
	TCPPort     int           // 0: a free one
	Linger      time.Duration // how long it stays without a client; 0: 10 s
	MemoryBytes int64         // limit for all queries and caches; 0: 75% of RAM
	LogLevel    string        // ClickHouse's; "": warning
	// ExtraConfig is XML for inside <clickhouse> of the engine's config, such as
	// <remote_servers> and <macros>.  If not empty it replaces DIR/extra.xml,
	// which every later start reads too.
	ExtraConfig string

	StartTimeout time.Duration // 0: 30 s
	MinBackoff   time.Duration // wait before the second start; doubles; 0: 100 ms
	MaxBackoff   time.Duration // 0: 10 s
}

// The defaults of Options.
const (
	DefaultLinger       = 10 * time.Second
	DefaultStartTimeout = 30 * time.Second
	DefaultMinBackoff   = 100 * time.Millisecond
	DefaultMaxBackoff   = 10 * time.Second
	DefaultLogLevel     = "warning"
)

// withDefaults checks o and fills in what is not given.
func (o Options) withDefaults() (Options, error) {
	if o.Dir == "" {
		return o, fmt.Errorf("%w: Options.Dir must be given", ErrUsage)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"Linger", &o.Linger, DefaultLinger},
		{"StartTimeout", &o.StartTimeout, DefaultStartTimeout},
		{"MinBackoff", &o.MinBackoff, DefaultMinBackoff},
		{"MaxBackoff", &o.MaxBackoff, DefaultMaxBackoff},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("%w: Options.%s must not be negative, got %v", ErrUsage, d.name, *d.value)
		}
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	if o.LogLevel == "" {
		o.LogLevel = DefaultLogLevel
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

// FindBinary is where the engine's executable is: given, else "engine" beside this
// process's own executable, else $RETRYLENS_ENGINE.  ErrNoBinary if there is none.
func FindBinary(given string) (string, error) {
	var tried []string
	for _, p := range []string{given, sibling(), os.Getenv("RETRYLENS_ENGINE")} {
		if p == "" {
			continue
		}
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() {
			return p, nil
		}
		tried = append(tried, p)
		if p == given {
			break
		}
	}
	return "", fmt.Errorf("%w: looked for %q\nbuild it (make build) or say where it is with $RETRYLENS_ENGINE", ErrNoBinary, tried)
}

func sibling() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(self), "engine")
}

// prepare makes the data directory, its passwords and its extra.xml.
func (o Options) prepare() (datadir.Dir, datadir.Passwords, error) {
	d, err := datadir.Open(o.Dir)
	if err != nil {
		return d, datadir.Passwords{}, err
	}
	pw, err := d.Passwords()
	if err != nil {
		return d, pw, err
	}
	if o.ExtraConfig != "" {
		err = d.WriteExtraConfig(o.ExtraConfig)
	}
	return d, pw, err
}
