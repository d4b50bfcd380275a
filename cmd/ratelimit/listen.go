package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// unixPrefix marks an address that is the path of a unix socket.
const unixPrefix = "unix:"

// listen opens address, host:port or unix:PATH. The flag is for the error.
func listen(flag, address string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, unixPrefix)
	network := "tcp"
	if isUnix {
		network, address = "unix", path
		if err := removeStale(path); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return l, nil
}

// removeStale removes the socket that a process which is gone left at path; one that somebody listens on stays.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return fmt.Errorf("another process listens on %s", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// isPublic tells whether address can be reached from another machine, as far as the address itself says.
func isPublic(address string) bool {
	if strings.HasPrefix(address, unixPrefix) {
		return false
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || !ip.IsLoopback()
}
