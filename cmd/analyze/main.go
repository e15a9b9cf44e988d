// Command analyze tells what retries did: reports, single operations, and the
// state of a store.
package main

import "github.com/retrylens/retrylens/internal/app/cli"

func main() { cli.Main(newCommand) }
