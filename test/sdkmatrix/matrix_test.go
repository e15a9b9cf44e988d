package main

import "testing"

func TestMatrix(t *testing.T) {
	for _, k := range sdks {
		for _, sc := range scenarios {
			if sc.onlyIfTold && !k.counts {
				continue
			}
			t.Run(k.name+"/"+sc.name, func(t *testing.T) {
				for _, p := range run(t.Context(), k, sc).Problems {
					t.Error(p)
				}
			})
		}
	}
}
