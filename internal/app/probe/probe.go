// Package probe asks a ClickHouse over HTTP what doctor wants to know of it:
// version, clock, disks, schema, retention, permission. It reads and changes
// nothing, and knows neither stores nor drivers.
package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Server is a ClickHouse with an HTTP port.
type Server struct {
	URL      string // http(s)://host:port/
	User     string
	Password string
	Database string
	Cluster  string // "" = single node
	Client   *http.Client
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 64 << 10

// Version is the server's.
func (s Server) Version(ctx context.Context) (string, error) { return s.ask(ctx, "SELECT version()") }

// Skew is how far the server's clock is ahead of ours, to within half the time
// of a round trip.
func (s Server) Skew(ctx context.Context, now func() time.Time) (time.Duration, error) {
	before := now()
	text, err := s.ask(ctx, "SELECT toUnixTimestamp64Milli(now64(3))")
	if err != nil {
		return 0, err
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server's clock says %.40q", text)
	}
	ours := before.Add(now().Sub(before) / 2)
	return time.UnixMilli(ms).Sub(ours).Round(time.Millisecond), nil
}

// FreeBytes is the free space of the disk that has least.
func (s Server) FreeBytes(ctx context.Context) (uint64, error) {
	return s.number(ctx, "SELECT min(free_space) FROM system.disks")
}

// SchemaVersion is the number of the newest migration applied.
func (s Server) SchemaVersion(ctx context.Context) (uint64, error) {
	return s.number(ctx, "SELECT max(id) FROM "+identifier(s.Database)+".schema_migrations")
}

// RetentionDays is how long the table of attempts keeps them.
func (s Server) RetentionDays(ctx context.Context) (uint64, error) {
	return s.number(ctx, "SELECT extract(create_table_query, 'TTL .*toIntervalDay\\((\\d+)\\)') FROM system.tables WHERE database = "+
		quoted(s.Database)+" AND name = "+quoted(s.local("attempts")))
}

// MayInsert tells whether the user may insert attempts.
func (s Server) MayInsert(ctx context.Context) (bool, error) {
	n, err := s.number(ctx, "CHECK GRANT INSERT ON "+identifier(s.Database)+".attempts")
	return n == 1, err
}

func (s Server) local(table string) string {
	if s.Cluster != "" {
		table += "_local"
	}
	return table
}

func (s Server) number(ctx context.Context, query string) (uint64, error) {
	text, err := s.ask(ctx, query)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server answers %.60q", text)
	}
	return n, nil
}

// ask runs a query and returns the one value that it gives.
func (s Server) ask(ctx context.Context, query string) (string, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", errors.New("the address does not parse")
	}
	u.User, u.RawQuery = nil, ""
	// Not GET, with which everybody may only read: CHECK GRANT would deny it all.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(query))
	if err != nil {
		return "", err
	}
	if s.User != "" {
		req.Header.Set("X-ClickHouse-User", s.User)
		req.Header.Set("X-ClickHouse-Key", s.Password)
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the address and the query in it
		}
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(body))
	if resp.StatusCode != http.StatusOK {
		line, _, _ := strings.Cut(text, "\n")
		return "", fmt.Errorf("%.200s", line)
	}
	return text, nil
}

var stringEscapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

func quoted(s string) string { return "'" + stringEscapes.Replace(s) + "'" }

func identifier(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}
