package enginetest

import (
	"encoding/xml"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/retrylens/retrylens/internal/engine"
	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// Cluster is the name of the cluster that StartCluster makes.
const Cluster = "retrylens"

// StartCluster starts one engine for each shard, which know each other as the
// cluster Cluster.  Shard n has the macros shard (n, from 1) and cluster.
func StartCluster(tb testing.TB, shards int) []*engine.Client {
	tb.Helper()
	all := make([]engine.Options, shards)
	for i, port := range freePorts(tb, shards) {
		all[i] = Options(tb)
		all[i].TCPPort = port
	}
	servers := remoteServers(tb, all)
	clients := make([]*engine.Client, shards)
	for i, o := range all {
		o.ExtraConfig = fmt.Sprintf("<macros><cluster>%s</cluster><shard>%d</shard></macros>\n%s", Cluster, i+1, servers)
		clients[i] = Open(tb, o)
		tb.Cleanup(func() { Stop(tb, o.Dir) })
	}
	return clients
}

// freePorts are ports that nobody listens on at this moment.
func freePorts(tb testing.TB, n int) []int {
	tb.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		defer l.Close() // after all are chosen, so that they differ
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func remoteServers(tb testing.TB, all []engine.Options) string {
	tb.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "<remote_servers><%s>\n", Cluster)
	for _, o := range all {
		pw, err := datadir.Dir(o.Dir).Passwords()
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&b, "<shard><replica><host>127.0.0.1</host><port>%d</port><user>%s</user><password>", o.TCPPort, datadir.User)
		if err := xml.EscapeText(&b, []byte(pw.User)); err != nil {
			tb.Fatal(err)
		}
		b.WriteString("</password></replica></shard>\n")
	}
	fmt.Fprintf(&b, "</%s></remote_servers>\n", Cluster)
	return b.String()
}
