package clickhouse_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/clickhouse"
)

// TestTheLatestOfAnEpisodeIsKept, whatever its status; live ones and incidents are found.
func TestTheLatestOfAnEpisodeIsKept(t *testing.T) {
	s, now := newStore(t), time.Now().UTC().Truncate(time.Millisecond)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	pending := clickhouse.AlertRow{Rule: "A", GroupKey: "t\x00p", ActiveAt: *ago(time.Hour), Status: "pending", Body: "a pending"}
	firing, resolved := pending, pending
	firing.Status, firing.FiredAt, firing.Body = "firing", ago(59*time.Minute), "a firing"
	resolved.Status, resolved.FiredAt, resolved.ResolvedAt, resolved.Body = "resolved", ago(59*time.Minute), ago(20*time.Minute), "a resolved"
	other := clickhouse.AlertRow{Rule: "B", ActiveAt: now, Status: "pending", Body: "b"}
	again := clickhouse.AlertRow{Rule: "A", GroupKey: "t\x00p", ActiveAt: *ago(time.Minute), Status: "firing", FiredAt: ago(time.Minute), Body: "a again"}
	dropped := other
	dropped.Status, dropped.Body = "dropped", "b dropped"
	for _, step := range []struct {
		save                   []clickhouse.AlertRow
		live5m, live1h, recent []string
	}{
		{[]clickhouse.AlertRow{pending}, []string{"a pending"}, []string{"a pending"}, nil},
		{[]clickhouse.AlertRow{firing, other}, []string{"a firing", "b"}, []string{"a firing", "b"}, []string{"a firing"}},
		{[]clickhouse.AlertRow{resolved}, []string{"b"}, []string{"a resolved", "b"}, nil},
		{[]clickhouse.AlertRow{again, dropped}, []string{"a again"}, []string{"a resolved", "a again"}, []string{"a again"}},
	} {
		if err := s.SaveAlerts(t.Context(), step.save); err != nil {
			t.Fatal(err)
		}
		live5m, err5m := s.LiveAlerts(t.Context(), 5*time.Minute)
		live1h, err1h := s.LiveAlerts(t.Context(), time.Hour)
		recent, err := s.Incidents(t.Context(), now.Add(-10*time.Minute), now.Add(time.Minute), 10)
		if err5m != nil || err1h != nil || err != nil {
			t.Fatal(err5m, err1h, err)
		}
		if !reflect.DeepEqual(live5m, step.live5m) || !reflect.DeepEqual(live1h, step.live1h) || !reflect.DeepEqual(recent, step.recent) {
			t.Errorf("after %s: live %q and %q, incidents %q", step.save[0].Body, live5m, live1h, recent)
		}
	}
	if all, err := s.Incidents(t.Context(), now.Add(-2*time.Hour), now, 1); err != nil || len(all) != 1 || all[0] != "a again" {
		t.Errorf("%q %v", all, err)
	}
}

// TestOneHoldsTheLease: the first; the next when it gives up or is silent; who was silent
// comes last.
func TestOneHoldsTheLease(t *testing.T) {
	s := newStore(t)
	const ttl = 30 * time.Second
	a, b, c := s.NewLease("alerts", "z", ttl), s.NewLease("alerts", "y", ttl), s.NewLease("alerts", "x", ttl)
	other := s.NewLease("other", "o", ttl)
	hold := func(l *clickhouse.Lease) bool {
		t.Helper()
		got, err := l.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	must := func(step string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %t", step, got)
		}
	}
	must("the first", hold(a), true)
	must("another name", hold(other), true)
	must("the second", hold(b), false)
	must("the third", hold(c), false)
	must("the first again", hold(a), true)
	if err := a.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	must("the third after the release", hold(c), false)
	must("the second after the release", hold(b), true)
	must("the first, back", hold(a), false)
	if err := s.Silence(t.Context(), "y"); err != nil { // as after a long pause
		t.Fatal(err)
	}
	must("the third while the second is silent", hold(c), true)
	must("the second, back", hold(b), false)
}

// TestTheLatestDetectorStateIsKept, of every series, whatever its bytes.
func TestTheLatestDetectorStateIsKept(t *testing.T) {
	s := newStore(t)
	for _, body := range []string{"old", "new \x00\xff"} {
		err := s.SaveDetectorStates(t.Context(), []clickhouse.DetectorState{
			{Tenant: "t", Provider: "p", Model: "", Body: []byte(body)}, {Tenant: "*", Provider: "*", Model: "*", Body: []byte("all " + body)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{}
	if err := s.EachDetectorState(t.Context(), func(b []byte) error { got[string(b)] = true; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !got["new \x00\xff"] || !got["all new \x00\xff"] {
		t.Errorf("%v", got)
	}
}
