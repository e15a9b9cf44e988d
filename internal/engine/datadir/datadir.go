package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Dir is the absolute path of a data directory.
type Dir string

// Open makes path absolute and creates what is missing of it, with mode 0700.
// A directory that exists keeps its mode.
func Open(path string) (Dir, error) {
	if path == "" {
		return "", errors.New("datadir: no data directory given")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("datadir: %w", err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", fmt.Errorf("datadir: %w", err)
	}
	return Dir(abs), nil
}

func (d Dir) path(elem ...string) string {
	return filepath.Join(append([]string{string(d)}, elem...)...)
}

// StateFile is engine.json.
func (d Dir) StateFile() string { return d.path("engine.json") }

// ExtraConfigFile is extra.xml.
func (d Dir) ExtraConfigFile() string { return d.path("extra.xml") }

// EngineLog is the standard output and error of a detached engine.
func (d Dir) EngineLog() string { return d.path("engine.log") }

// ConfigDir holds the generated config.xml and users.xml.
func (d Dir) ConfigDir() string { return d.path("config") }

// ServerLogDir holds ClickHouse's own log.
func (d Dir) ServerLogDir() string { return d.path("log") }

// FilesDir is ClickHouse's user_files_path.
func (d Dir) FilesDir() string { return d.path("files") }

// StoreDir is ClickHouse's path.
func (d Dir) StoreDir() string { return d.path("clickhouse") }

func (d Dir) engineLock() string  { return d.path("engine.lock") }
func (d Dir) clientsLock() string { return d.path("clients.lock") }

// writeFile replaces the file name in one step: a reader sees the old content or
// the new one, and after a crash one of the two is there.
func writeFile(name string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once renamed, as it should
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// WriteExtraConfig replaces extra.xml.
func (d Dir) WriteExtraConfig(xml string) error {
	return writeFile(d.ExtraConfigFile(), []byte(xml), 0o600)
}
