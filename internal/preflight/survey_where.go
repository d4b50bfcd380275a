package preflight

import (
	"cmp"
	"context"
	"net"
	"slices"
)

// loopback stands for every address of this machine.
const loopback = "(this one)"

// dialed is where the server that announces address is reached.
func (s *survey) dialed(address string) string { return cmp.Or(s.cfg.NAT[address], address) }

// strangers are the addresses that lead to a server that is not known yet, which then is.
func (s *survey) strangers(ctx context.Context, addresses []string, known map[string]bool) []string {
	var fresh []string
	for _, address := range addresses {
		if id := s.identity(ctx, address); !known[id] {
			known[id] = true
			fresh = append(fresh, address)
		}
	}
	return fresh
}

// identity is what two addresses of one server have in common: where they lead.
func (s *survey) identity(ctx context.Context, address string) string {
	host, port, err := net.SplitHostPort(s.dialed(address))
	if err != nil {
		return address
	}
	return net.JoinHostPort(s.resolve(ctx, host), port)
}

// resolve is the first address of a name; the name itself if it has none.
func (s *survey) resolve(ctx context.Context, host string) string {
	if net.ParseIP(host) != nil {
		return host
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil || len(found) == 0 {
		return host
	}
	return slices.Min(found)
}

// machine is what servers on one machine have in common.
func (s *survey) machine(ctx context.Context, dialed string) string {
	host, _, err := net.SplitHostPort(dialed)
	if err != nil {
		return loopback // a socket file
	}
	address := s.resolve(ctx, host)
	if ip := net.ParseIP(address); ip != nil && ip.IsLoopback() {
		return loopback
	}
	return address
}
