// The command gen writes the dashboards for Grafana below a directory: make dashboards.
package main

import (
	"fmt"
	"os"

	"github.com/retrylens/retrylens/internal/dashboards"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen DIR")
		os.Exit(2)
	}
	if err := dashboards.Write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
