package ingestd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/retrylens/retrylens/internal/ingestd"
)

// issue writes a certificate of its own authority to dir and returns it.
func issue(t *testing.T, dir, name string) (ingestd.TLSFiles, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	f := ingestd.TLSFiles{Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key")}
	for path, block := range map[string]*pem.Block{f.Cert: {Type: "CERTIFICATE", Bytes: der}, f.Key: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	return f, pair
}

func TestTLSWithClientCertificates(t *testing.T) {
	dir := t.TempDir()
	files, _ := issue(t, dir, "server")
	client, pair := issue(t, dir, "client")
	_, stranger := issue(t, dir, "stranger")
	files.ClientCA = client.Cert
	l, err := ingestd.Listen("127.0.0.1:0", files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	server := ingestd.NewServer(h, slog.New(slog.DiscardHandler))
	go server.Serve(l)
	defer server.Close()
	get := func(certs ...tls.Certificate) error {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs}}}
		defer c.CloseIdleConnections()
		resp, err := c.Get("https://" + l.Addr().String())
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	if err := get(pair); err != nil {
		t.Error(err)
	}
	if get() == nil || get(stranger) == nil {
		t.Error("accepted without a certificate, or with a stranger's")
	}
}

func TestBadTLSFilesAreToldAtTheStart(t *testing.T) {
	dir := t.TempDir()
	files, _ := issue(t, dir, "server")
	for _, bad := range []ingestd.TLSFiles{
		{Cert: files.Cert, Key: filepath.Join(dir, "none")},
		{Cert: files.Cert, Key: files.Key, ClientCA: files.Key},
		{Cert: files.Key, Key: files.Cert},
	} {
		if l, err := ingestd.Listen("127.0.0.1:0", bad, slog.New(slog.DiscardHandler)); err == nil {
			l.Close()
			t.Errorf("%+v accepted", bad)
		}
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "localhost:1": true, "[::1]:1": true, "127.9.9.9:0": true,
		":8480": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "example.org:1": false, "x": false,
	} {
		if got := ingestd.Loopback(addr); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}
