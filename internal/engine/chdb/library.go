//go:build linux && (amd64 || arm64)

package chdb

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is what is used of libchdb.so.
type library struct {
	queryCmdline func(argc int32, argv unsafe.Pointer) uintptr // chdb_result *(int, char **)
	resultError  func(uintptr) string                          // const char *(chdb_result *)
	destroy      func(uintptr)
	version      func() string
}

// load maps the library.  A symbol that is missing panics in purego, so each is
// looked up first.
func load(path string) (*library, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("chdb: cannot load %s: %w", path, err)
	}
	l := &library{}
	for name, f := range map[string]any{
		"chdb_query_cmdline":        &l.queryCmdline,
		"chdb_result_error":         &l.resultError,
		"chdb_destroy_query_result": &l.destroy,
		"chdb_version":              &l.version,
	} {
		p, err := purego.Dlsym(h, name)
		if err != nil {
			return nil, fmt.Errorf("chdb: %s is no libchdb of the right release: %w", path, err)
		}
		purego.RegisterFunc(f, p)
	}
	return l, nil
}

// cmdline runs clickhouse with args and returns when it ends.  The caller's
// goroutine must be locked to its thread.
func (l *library) cmdline(args []string) error {
	argv := make([]*byte, len(args)+1)
	var pin runtime.Pinner
	defer pin.Unpin()
	for i, a := range args {
		argv[i] = &append([]byte(a), 0)[0]
		pin.Pin(argv[i])
	}
	pin.Pin(&argv[0])
	r := l.queryCmdline(int32(len(args)), unsafe.Pointer(&argv[0]))
	defer l.destroy(r)
	if s := l.resultError(r); s != "" {
		return errors.New(s)
	}
	return nil
}
