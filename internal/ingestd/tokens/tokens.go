package tokens

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// AnyTenant in the list of a token stands for all.
const AnyTenant = "*"

// Principal is who a token stands for.
type Principal struct {
	Tenants []string // at least one; AnyTenant = all
	Default string   // the tenant of records that name none; "" = they must name one
}

// May tells whether records of a tenant may be sent.
func (p *Principal) May(tenant string) bool {
	return slices.Contains(p.Tenants, tenant) || slices.Contains(p.Tenants, AnyTenant)
}

// NewPrincipal is a principal whose default tenant is its only one.
func NewPrincipal(tenants ...string) Principal {
	p := Principal{Tenants: tenants}
	if len(tenants) == 1 && tenants[0] != AnyTenant {
		p.Default = tenants[0]
	}
	return p
}

// Set is the tokens of a file. It is read only.
type Set struct{ entries []entry }

type entry struct {
	hash      [sha256.Size]byte
	principal Principal
}

// line is one line of the file.
type line struct {
	SHA256  string   `json:"sha256"`
	Tenants []string `json:"tenants"`
	Tenant  string   `json:"tenant"`
	Note    string   `json:"note"` // for people
}

// ErrNone is returned for a file without any token.
var ErrNone = errors.New("tokens: the file has no token")

// Parse reads a file of tokens, one JSON object a line:
//
//	{"sha256":"9f86d0…","tenant":"acme","note":"checkout"}
//	{"sha256":"60303a…","tenants":["acme","globex"]}
//	{"sha256":"fd61a0…","tenants":["*"]}
//
// Empty lines and lines that start with # are skipped. An error names the line
// and never quotes it.
func Parse(r io.Reader) (*Set, error) {
	s := &Set{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		e, err := parseLine(text)
		if err != nil {
			return nil, fmt.Errorf("tokens: line %d: %w", n, err)
		}
		for _, other := range s.entries {
			if other.hash == e.hash {
				return nil, fmt.Errorf("tokens: line %d: the same token as in a line before", n)
			}
		}
		s.entries = append(s.entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	if len(s.entries) == 0 {
		return nil, ErrNone
	}
	return s, nil
}

func parseLine(text []byte) (entry, error) {
	var l line
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return entry{}, errors.New(`want {"sha256":"…","tenant":"…"} or {"sha256":"…","tenants":["…"]}`)
	}
	if _, err := d.Token(); err != io.EOF { //nolint:errorlint // the decoder returns it bare
		return entry{}, errors.New("there is more behind the token: one a line")
	}
	var e entry
	hash, err := hex.DecodeString(l.SHA256)
	if err != nil || len(hash) != len(e.hash) {
		return entry{}, errors.New("sha256 must be 64 hexadecimal digits: the SHA-256 of the token (printf %s TOKEN | sha256sum)")
	}
	copy(e.hash[:], hash)
	if e.hash == sha256.Sum256(nil) {
		return entry{}, errors.New("sha256 is that of an empty token: was a variable not set?")
	}
	if l.Tenant != "" {
		l.Tenants = append(l.Tenants, l.Tenant)
	}
	if len(l.Tenants) == 0 || slices.Contains(l.Tenants, "") {
		return entry{}, errors.New("tenant or tenants must be given and not be empty")
	}
	e.principal = NewPrincipal(l.Tenants...)
	return e, nil
}

// Find returns whose token it is. How long it takes depends on the number of
// tokens only. An empty token is nobody's.
func (s *Set) Find(token string) (Principal, bool) {
	if token == "" {
		return Principal{}, false
	}
	hash := sha256.Sum256([]byte(token))
	found := -1
	for i := range s.entries {
		same := subtle.ConstantTimeCompare(hash[:], s.entries[i].hash[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return Principal{}, false
	}
	return s.entries[found].principal, true
}

// Len is how many tokens there are.
func (s *Set) Len() int { return len(s.entries) }
