package emit

// Listings is how often the directory was listed.
func (s *Spool) Listings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listings
}
