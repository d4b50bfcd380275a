package process

import (
	"errors"
	"fmt"
	"net"
)

// FreeAddresses returns n loopback addresses that nothing listens on. They are held together before any is released,
// so they differ; another process may still take one before the caller does.
func FreeAddresses(n int) ([]string, error) {
	listeners := make([]net.Listener, 0, n)
	addrs := make([]string, 0, n)
	var errs []error
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			errs = append(errs, fmt.Errorf("process: find a free address: %w", err))
			break
		}
		listeners = append(listeners, l)
		addrs = append(addrs, l.Addr().String())
	}
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return addrs, errors.Join(errs...)
}

// IsFree is whether nothing listens on the TCP address addr now.
func IsFree(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	return l.Close() == nil
}
