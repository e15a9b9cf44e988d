package web

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/export"
	"github.com/retrylens/retrylens/internal/metrics"
	"github.com/retrylens/retrylens/internal/query"
)

// manifest says what the files of an export hold, so that they can be told to be whole
// and the same later.
type manifest struct {
	Of           string                `json:"of"` // report or operations
	Query        map[string][]string   `json:"query"`
	Tenants      []string              `json:"restricted_to_tenants"` // null = the viewer sees all
	MadeAt       time.Time             `json:"made_at"`
	Version      string                `json:"version"`
	Provisional  bool                  `json:"provisional"`
	Completeness *metrics.Completeness `json:"completeness"`
	Rows         int                   `json:"rows"`
	Columns      []string              `json:"columns"`
	Files        []manifestFile        `json:"files"`
}

type manifestFile struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// manifest answers /export/{of}: it makes the CSV anew, reads through it, and tells its hash
// and its rows.
func (u *UI) manifest(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), u.o.Timeout)
	defer cancel()
	m, err := u.makeManifest(ctx, r)
	if err != nil {
		status, told := u.problem(page{path: r.URL.Path}, err)
		http.Error(w, told.Title+". "+told.Text, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Disposition", `attachment; filename="`+m.Of+`.manifest.json"`)
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(m)
}

func (u *UI) makeManifest(ctx context.Context, r *http.Request) (*manifest, error) {
	values := r.URL.Query()
	values.Del("format")
	s, err := readState(r, u.o.Now(), "now-1h")
	if err != nil {
		return nil, err
	}
	if s.query, err = query.Parse(values, s.now); err != nil {
		return nil, err
	}
	tenants, err := api.Restrict(ctx, s.query.Filters[metrics.DimTenant])
	if err != nil {
		return nil, err
	}
	if len(tenants) > 0 {
		s.query.Filters[metrics.DimTenant] = tenants
	}
	m := &manifest{Of: chi.URLParam(r, "of"), Query: values, MadeAt: s.now, Version: u.o.Version}
	m.Tenants, _ = api.Tenants(ctx)
	t, err := u.exported(ctx, s, m)
	if err != nil {
		return nil, err
	}
	values.Set("format", "csv")
	return m, m.hash(t, api.Prefix+"/"+m.Of+"?"+values.Encode())
}

// exported is the table that is exported.
func (u *UI) exported(ctx context.Context, s *state, m *manifest) (export.Table, error) {
	switch m.Of {
	case "report":
		r, err := u.o.Source.Report(ctx, s.query)
		if err != nil {
			return export.Table{}, err
		}
		m.Provisional, m.Completeness = r.Provisional, r.Completeness
		return export.Report(r), nil
	case "operations":
		search, err := s.search()
		if err != nil {
			return export.Table{}, err
		}
		c, err := u.o.Source.Completeness(ctx, s.query.Filters[metrics.DimTenant]...)
		if err != nil {
			return export.Table{}, err
		}
		m.Provisional, m.Completeness = search.Provisional(0), c
		search.After = metrics.Cursor{} // all of them, not this page
		return export.Operations(search.Pages(ctx, u.o.Source.Operations), nil), nil
	}
	return export.Table{}, errNotFound
}

// hash reads the table through as CSV.
func (m *manifest) hash(t export.Table, address string) error {
	for _, c := range t.Columns {
		m.Columns = append(m.Columns, c.Name)
	}
	rows := t.Rows
	t.Rows = func(yield func([]export.Cell, error) bool) {
		for cells, err := range rows {
			if err == nil {
				m.Rows++
			}
			if !yield(cells, err) {
				return
			}
		}
	}
	sum, size := sha256.New(), counting(0)
	if err := export.CSV(io.MultiWriter(sum, &size), t); err != nil {
		return fmt.Errorf("web: manifest: %w", err)
	}
	m.Files = []manifestFile{{URL: address, SHA256: hex.EncodeToString(sum.Sum(nil)), Bytes: int64(size)}}
	return nil
}

type counting int64

func (c *counting) Write(b []byte) (int, error) { *c += counting(len(b)); return len(b), nil }
