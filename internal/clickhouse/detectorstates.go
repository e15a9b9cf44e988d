package clickhouse

import (
	"context"
	"fmt"
)

// DetectorState is what the detector knows of one series.
type DetectorState struct {
	Tenant, Provider, Model string
	Body                    []byte
}

// SaveDetectorStates replaces what was saved of the same series before.
func (s *Store) SaveDetectorStates(ctx context.Context, states []DetectorState) error {
	b, err := s.conn.PrepareBatch(s.with(ctx, nil), "INSERT INTO "+s.database+".detector_states (tenant, provider, model, body)")
	if err == nil {
		defer b.Abort() //nolint:errcheck // after Send it does nothing
		for _, st := range states {
			if err = b.Append(st.Tenant, st.Provider, st.Model, st.Body); err != nil {
				break
			}
		}
	}
	if err == nil {
		err = b.Send()
	}
	if err != nil {
		return fmt.Errorf("clickhouse: save what the detector knows: %w", err)
	}
	return nil
}

// EachDetectorState reads the latest of every series.
func (s *Store) EachDetectorState(ctx context.Context, each func(body []byte) error) error {
	rows, err := s.conn.Query(s.with(ctx, nil), "SELECT argMax(body, version) FROM "+s.database+".detector_states GROUP BY tenant, provider, model")
	if err != nil {
		return fmt.Errorf("clickhouse: read what the detector knows: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var body string
		if err := rows.Scan(&body); err != nil {
			return fmt.Errorf("clickhouse: read what the detector knows: %w", err)
		}
		if err := each([]byte(body)); err != nil {
			return err
		}
	}
	return rows.Err()
}
