package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports that FreeAddresses prefers: below those that Linux gives to outgoing connections, so that a server that is
// restarted on a busy machine finds its port free again.
const (
	firstPort = 20000
	lastPort  = 31999
)

// FreeAddresses returns n loopback addresses that nothing listens on. They are held together before any is released,
// so they differ; another process may still take one before the caller does.
func FreeAddresses(n int) ([]string, error) {
	listeners := make([]net.Listener, 0, n)
	addrs := make([]string, 0, n)
	var errs []error
	for range n {
		l, err := listen()
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

// listen tries preferred ports at random, and takes what the system gives if they seem to be full.
func listen() (net.Listener, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// IsFree is whether nothing listens on the TCP address addr now.
func IsFree(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	return l.Close() == nil
}
