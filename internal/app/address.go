package app

import (
	"net/url"
	"strings"
)

// DefaultStore is the address of a store unless one is given.
const DefaultStore = "embedded:./data"

// Address is a parsed --store.
type Address struct {
	Dir string // of the embedded engine; "" = an external server
	URL string // of an external server, with its password; "" = embedded
}

// ParseAddress reads embedded:DIR, clickhouse://user:pass@host:9000[,host2:9000]/db
// or http(s)://…. An error never quotes the address: it may hold a password.
func ParseAddress(s string) (Address, error) {
	if s == "" {
		s = DefaultStore
	}
	if dir, ok := strings.CutPrefix(s, "embedded:"); ok {
		if dir == "" {
			return Address{}, usagef("--store: embedded: names no directory; write embedded:./data")
		}
		return Address{Dir: dir}, nil
	}
	scheme, _, ok := strings.Cut(s, "://")
	switch {
	case !ok:
		return Address{}, usagef("--store must be embedded:DIR, clickhouse://user:pass@host:9000/db or http(s)://user:pass@host:8123/db%s", hintDir(s))
	case scheme != "clickhouse" && scheme != "http" && scheme != "https":
		return Address{}, usagef("--store: unknown scheme %.20q; use embedded:, clickhouse://, http:// or https://", scheme)
	}
	u, err := url.Parse(s)
	if err != nil {
		return Address{}, usagef("--store is no valid URL (not shown, it may hold a password): write special characters of user and password as %%XX, such as %%40 for @")
	}
	if u.Host == "" {
		return Address{}, usagef("--store: no host in %s://", scheme)
	}
	return Address{URL: credentialsToUser(u).String()}, nil
}

// hintDir helps who wrote a directory; anything else may be a secret.
func hintDir(s string) string {
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") {
		return "; for a directory write embedded:DIR"
	}
	return ""
}

// credentialsToUser moves username and password from the query, where nobody
// would redact them, to their place.
func credentialsToUser(u *url.URL) *url.URL {
	q := u.Query()
	name, password := q.Get("username"), q.Get("password")
	if name == "" && password == "" {
		return u
	}
	if u.User != nil {
		if name == "" {
			name = u.User.Username()
		}
		if p, ok := u.User.Password(); ok && password == "" {
			password = p
		}
	}
	q.Del("username")
	q.Del("password")
	u.User, u.RawQuery = url.UserPassword(name, password), q.Encode()
	return u
}

// Embedded tells whether the store is an engine of our own.
func (a Address) Embedded() bool { return a.Dir != "" }

// String is the address for people: without password and query.
func (a Address) String() string {
	if a.Embedded() {
		return "embedded:" + a.Dir
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		return "(an address that does not parse)"
	}
	u.RawQuery = ""
	return u.Redacted()
}
