package datadir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// The engine's two users and its database.
const (
	User     = "retrylens" // owns Database
	Viewer   = "viewer"    // reads it
	Database = "retrylens"
)

// Passwords are those of the two users.  They are made once for a data directory
// and stay, so a client may keep them over restarts of the engine.
type Passwords struct{ User, Viewer string }

// Passwords reads the password files of d, and makes those that are not there.
func (d Dir) Passwords() (Passwords, error) {
	var p Passwords
	var err error
	if p.User, err = secret(d.path("password")); err != nil {
		return p, err
	}
	p.Viewer, err = secret(d.path("viewer.password"))
	return p, err
}

// secret reads a password file or makes one.  Of two processes that make it at
// the same time both get the same one: the link is made once.
func secret(name string) (string, error) {
	if s, err := readSecret(name); !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	tmp := fmt.Sprintf("%s.%s", name, rand.Text())
	if err := os.WriteFile(tmp, []byte(rand.Text()+"\n"), 0o600); err != nil {
		return "", err
	}
	defer os.Remove(tmp)
	if err := os.Link(tmp, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return readSecret(name)
}

func readSecret(name string) (string, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("datadir: %s has mode %04o, so others may read it: "+
			"delete it (a new one is made) or chmod 600 it", name, fi.Mode().Perm())
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	s := strings.TrimSpace(string(b))
	if s == "" {
		return "", fmt.Errorf("datadir: %s is empty: delete it (a new one is made)", name)
	}
	return s, nil
}
