package host

import (
	"errors"
	"fmt"
	"io/fs"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/retrylens/retrylens/internal/engine/datadir"
)

// Access rights of Landlock: those of its first version and what came later.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readRight = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	openRight = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	v1Rights  = 1<<13 - 1 // up to MAKE_SYM
)

// readable is what the library and the C library read besides the data directory.
// Of /etc it is only what names hosts and time zones.
var readable = []string{
	"/proc", "/sys", "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/nix/store", "/gnu/store",
	"/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/localtime",
	"/etc/timezone", "/etc/ld.so.cache", "/dev/urandom", "/dev/random",
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// confine keeps the calling thread, and the threads it will start, to the files
// that ClickHouse needs, by Landlock (https://docs.kernel.org/userspace-api/landlock.html).
//
// It must be: in a clickhouse-local user_files_path does not hold, and the scalar
// function file() asks for no grant, so that who may SELECT could read all that
// this user can, our password files first.  What Go's own threads do is not
// confined.  errors.ErrUnsupported if the kernel has no Landlock.
func confine(d datadir.Dir) error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return fmt.Errorf("host: Landlock: %w (%w)", errors.ErrUnsupported, errno)
	}
	r, err := newRuleset(int(version))
	if err != nil {
		return err
	}
	defer unix.Close(r.fd)
	if err := r.allowAll(d); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("host: no_new_privs: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); errno != 0 {
		return fmt.Errorf("host: landlock_restrict_self: %w", errno)
	}
	return nil
}

// A ruleset is one under construction: what it handles is denied unless allowed.
type ruleset struct {
	fd      int
	handled uint64
}

func newRuleset(version int) (ruleset, error) {
	r := ruleset{handled: v1Rights}
	if version >= 2 {
		r.handled |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		r.handled |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	attr := struct{ fs uint64 }{r.handled}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return r, fmt.Errorf("host: landlock_create_ruleset: %w", errno)
	}
	r.fd = int(fd)
	return r, nil
}

func (r ruleset) allowAll(d datadir.Dir) error {
	rules := map[string]uint64{d.ConfigDir(): readRight}
	for _, p := range []string{d.StoreDir(), d.FilesDir(), d.ServerLogDir()} {
		rules[p] = r.handled &^ unix.LANDLOCK_ACCESS_FS_EXECUTE
	}
	for _, p := range readable {
		rules[p] = readRight
	}
	for _, p := range devices {
		rules[p] = openRight
	}
	for p, rights := range rules {
		if err := r.allow(p, rights); err != nil {
			return fmt.Errorf("host: landlock_add_rule %s: %w", p, err)
		}
	}
	return nil
}

// allow grants rights at and below path; one that is not there is passed over.
func (r ruleset) allow(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= openRight | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
