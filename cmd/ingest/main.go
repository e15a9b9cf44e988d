// Command ingest brings attempt records into a store, and makes some up.
package main

import "github.com/retrylens/retrylens/internal/app/cli"

func main() { cli.Main(newCommand) }
