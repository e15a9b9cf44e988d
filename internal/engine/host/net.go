package host

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/retrylens/retrylens/internal/engine/datadir"
)

func addr(port int) string { return net.JoinHostPort(Loopback, strconv.Itoa(port)) }

// pickPorts replaces each 0 by a port that is free at this moment.  Somebody may
// take it before the engine does, which then fails with engine.ErrPortBusy.
func pickPorts(httpPort, tcpPort int) (int, int, error) {
	for _, p := range []*int{&httpPort, &tcpPort} {
		if *p != 0 {
			continue
		}
		l, err := net.Listen("tcp", addr(0))
		if err != nil {
			return 0, 0, err
		}
		defer l.Close() // after both are chosen, so that they differ
		*p = l.Addr().(*net.TCPAddr).Port
	}
	return httpPort, tcpPort, nil
}

// prepareDatabase logs in as the owner, which shows that the whole way works,
// makes the database, and returns ClickHouse's version.
func prepareDatabase(ctx context.Context, d datadir.Dir, httpAddr string) (string, error) {
	pw, err := d.Passwords()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := query(ctx, httpAddr, pw.User, "CREATE DATABASE IF NOT EXISTS "+datadir.Database); err != nil {
		return "", err
	}
	return query(ctx, httpAddr, pw.User, "SELECT version()")
}

// query runs one statement over HTTP as the owner.
func query(ctx context.Context, httpAddr, password, sql string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+httpAddr+"/", strings.NewReader(sql))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-ClickHouse-User", datadir.User)
	req.Header.Set("X-ClickHouse-Key", password)
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // no proxy on loopback
	resp, err := c.Do(req)
	if err != nil {
		return "", fmt.Errorf("host: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("host: %q: %s", sql, strings.TrimSpace(string(b)))
	}
	return strings.TrimSpace(string(b)), err
}
