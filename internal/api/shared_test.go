package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/retrylens/retrylens/internal/api"
	"github.com/retrylens/retrylens/internal/metrics/histories"
)

// askAs asks as a viewer of one tenant, "" = of all, and reads the JSON.
func askAs(t *testing.T, address, tenant string, into any) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tenant != "" {
		req.Header.Set("Test-Tenant", tenant)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%d %s: %v", resp.StatusCode, text, err)
	}
	return string(text)
}

// TestOthersIncidentsDoNotUseUpALimit: what a viewer may not see takes no place from what
// they may.
func TestOthersIncidentsDoNotUseUpALimit(t *testing.T) {
	_, srv := service(t)
	for _, tenant := range histories.Tenants {
		var got api.IncidentList
		askAs(t, srv.URL+"/api/v1/incidents?limit=1", tenant, &got)
		if len(got.Incidents) != 1 || got.Incidents[0].Labels["tenant"] != tenant {
			t.Errorf("%s: %+v", tenant, got.Incidents)
		}
	}
	var all api.IncidentList
	askAs(t, srv.URL+"/api/v1/incidents?limit=1", "", &all)
	if len(all.Incidents) != 1 {
		t.Errorf("%d incidents, want the limit", len(all.Incidents))
	}
}

// TestWhatTenantsShareIsNotOneTenants: the store, its disk and who else sends are for viewers
// of all tenants.
func TestWhatTenantsShareIsNotOneTenants(t *testing.T) {
	_, srv := service(t)
	var all, one api.Status
	askAs(t, srv.URL+"/api/v1/status", "", &all)
	text := askAs(t, srv.URL+"/api/v1/status", histories.Tenants[0], &one)
	if all.Store == "" || all.FreeBytes == 0 || all.NewestAttemptAt == nil || len(all.Ingest) == 0 || all.Finaliser.DirtyMinutes == nil {
		t.Errorf("a viewer of all tenants: %+v", all)
	}
	if one.Store != "" || one.FreeBytes != 0 || one.NewestAttemptAt != nil || len(one.Ingest) != 0 || one.Finaliser.DirtyMinutes != nil || one.Version != all.Version {
		t.Errorf("a viewer of one tenant: %s", text)
	}
}
