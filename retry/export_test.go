package retry

// Rearm puts the run of a benchmark back to where its first attempt is on its way:
// what Next took or gave is undone.
func (r *Run) Rearm() {
	f := &r.first
	f.live = true
	f.provider.bulkhead.TryAcquire(f.at.StartedAt)
	r.token = true
	r.returnToken()
	r.over, r.won, r.resent, r.immediate = false, false, false, false
	r.tries, r.here, r.identity = 1, 0, 0
}
