package effects

// SetGap has f called between any two steps that a crash may part.
func SetGap(f func(name string)) { gap = f }
