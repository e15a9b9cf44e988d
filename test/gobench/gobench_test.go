package gobench_test

import (
	"testing"

	"github.com/retrylens/retrylens/test/gobench"
)

func TestTheFastestRunCounts(t *testing.T) {
	got := gobench.Parse(`goos: linux
BenchmarkA/x-y-2   	  100	      75.34 ns/op	        74.16 cpu-ns/op	      16 B/op	       1 allocs/op
BenchmarkA/x-y-2   	  100	      90.5 ns/op	        71 cpu-ns/op	      16 B/op	       1 allocs/op
BenchmarkA/x-y-2   	  100	      80 ns/op	      16 B/op	       1 allocs/op
BenchmarkDay     	    6	 404832384 ns/op	    214096 operations/s
PASS
`)
	if a := got["BenchmarkA/x-y"]; a != (gobench.Result{NS: 71, Bytes: 16, Allocs: 1}) {
		t.Errorf("%+v", a)
	}
	if d := got["BenchmarkDay"]; d.Operations != 214096 || len(got) != 2 {
		t.Errorf("%+v", got)
	}
}
