package world

import (
	"fmt"
)

// Bounds of a world.
const (
	maxWorkloads = 10_000
	maxPerMinute = 1e7
	maxFactor    = 1000
)

// Validate names the first thing that is wrong.
func (w *World) Validate() error {
	switch {
	case w.Start.IsZero():
		return fmt.Errorf("sim: Start is missing")
	case w.Duration < 0 || w.Duration == 0 && len(w.Trace) == 0:
		return fmt.Errorf("sim: Duration must be positive, got %v", w.Duration)
	case len(w.Workloads) == 0 || len(w.Workloads) > maxWorkloads:
		return fmt.Errorf("sim: there must be 1..%d workloads, got %d", maxWorkloads, len(w.Workloads))
	}
	for _, check := range []func() error{w.checkWorkloads, w.checkProviders, w.checkFaults, w.checkRest} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (w *World) checkWorkloads() error {
	total := 0.0
	for i := range w.Workloads {
		l := &w.Workloads[i]
		if err := l.check(); err != nil {
			return fmt.Errorf("sim: Workloads[%d]%w", i, err)
		}
		total += l.PerMinute
	}
	if !(total > 0 && total <= maxPerMinute) {
		return fmt.Errorf("sim: the workloads' PerMinute must come to above 0 and at most %.0f, got %v", maxPerMinute, total)
	}
	return nil
}

func (l *Workload) check() error {
	switch {
	case l.Tenant == "" || l.Service == "" || l.Provider == "":
		return fmt.Errorf(": Tenant, Service and Provider are required")
	case !(l.PerMinute >= 0):
		return fmt.Errorf(".PerMinute must not be negative, got %v", l.PerMinute)
	case !atMost(l.Season, 1):
		return fmt.Errorf(".Season must be within 0..1, got %v", l.Season)
	case !atMost(l.LearnsUsage, 1):
		return fmt.Errorf(".LearnsUsage must be within 0..1, got %v", l.LearnsUsage)
	case l.Queue != nil && (l.Queue.Visibility <= 0 || l.Queue.MaxDeliveries < 1 || l.Queue.MaxDeliveries > 1000):
		return fmt.Errorf(".Queue: Visibility must be positive and MaxDeliveries within 1..1000, got %v and %d", l.Queue.Visibility, l.Queue.MaxDeliveries)
	}
	if err := l.Policy.Validate(); err != nil {
		return fmt.Errorf(".Policy: %w", err)
	}
	if l.Gateway != nil {
		if err := l.Gateway.Policy.Validate(); err != nil {
			return fmt.Errorf(".Gateway.Policy: %w", err)
		}
	}
	return nil
}

func (w *World) checkProviders() error {
	seen := map[string]bool{}
	for i, p := range w.Providers {
		switch {
		case p.Name == "" || seen[p.Name]:
			return fmt.Errorf("sim: Providers[%d].Name is missing or given twice: %q", i, p.Name)
		case !(p.Utilization >= 0 && p.Utilization < 1):
			return fmt.Errorf("sim: Providers[%d].Utilization must be at least 0 and below 1, got %v", i, p.Utilization)
		case p.Patience < 0 || !atMost(p.RateLimit, 1e6):
			return fmt.Errorf("sim: Providers[%d]: Patience and RateLimit must not be negative, got %v and %v", i, p.Patience, p.RateLimit)
		}
		seen[p.Name] = true
	}
	return nil
}

func (w *World) checkFaults() error {
	for i, f := range w.Faults {
		at := fmt.Sprintf("sim: Faults[%d]", i)
		switch {
		case !w.calls(f.Provider, f.Model):
			return fmt.Errorf("%s: no workload calls %q %q", at, f.Provider, f.Model)
		case !f.ok():
			return fmt.Errorf("%s: From must be within 0..To, got %v..%v", at, f.From, f.To)
		case f.RampUp < 0 || f.RampDown < 0:
			return fmt.Errorf("%s: ramps must not be negative, got %v and %v", at, f.RampUp, f.RampDown)
		case !atMost(f.LatencyFactor, maxFactor):
			return fmt.Errorf("%s.LatencyFactor must be within 0..%d, got %v", at, maxFactor, f.LatencyFactor)
		case !atMost(f.CapacityFactor, maxFactor):
			return fmt.Errorf("%s.CapacityFactor must be within 0..%d, got %v", at, maxFactor, f.CapacityFactor)
		}
		for _, rate := range append(f.ErrorRates[:], f.HangRate, f.BreakRate) {
			if !atMost(rate, 1) {
				return fmt.Errorf("%s: a rate must be within 0..1, got %v", at, rate)
			}
		}
	}
	return nil
}

func (w *World) calls(provider, model string) bool {
	for i := range w.Workloads {
		if l := &w.Workloads[i]; l.Provider == provider && (model == "" || l.Model == model) {
			return true
		}
	}
	return false
}

func (w *World) checkRest() error {
	for i, s := range w.Surges {
		if !s.ok() || !atMost(s.Factor, 100) {
			return fmt.Errorf("sim: Surges[%d]: From must be within 0..To and Factor within 0..100, got %v..%v and %v", i, s.From, s.To, s.Factor)
		}
	}
	for i, r := range w.Resubmissions {
		if !r.ok() || !atMost(r.Share, 1) || r.Within <= 0 || r.Times < 1 || r.Times > 100 {
			return fmt.Errorf("sim: Resubmissions[%d] is out of range: %+v", i, r)
		}
	}
	for i, s := range w.SinkOutages {
		if !s.ok() || s.Buffer < 0 {
			return fmt.Errorf("sim: SinkOutages[%d]: From must be within 0..To and Buffer not negative, got %v..%v and %d", i, s.From, s.To, s.Buffer)
		}
	}
	for i, r := range w.Restarts {
		if r.At < 0 {
			return fmt.Errorf("sim: Restarts[%d].At must not be negative, got %v", i, r.At)
		}
	}
	return nil
}

func (w Window) ok() bool { return w.From >= 0 && w.To >= w.From }

// atMost tells whether v is within 0..high; NaN is not.
func atMost(v, high float64) bool { return v >= 0 && v <= high }
