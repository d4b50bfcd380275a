package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"

	"github.com/honestlimit/ratelimit/internal/process"
)

// peer is another service that speaks the same API, measured in the same rounds.
type peer struct {
	// command starts it; see peerPlaceholders. It may also only wait, if addr names a service that runs already.
	command string
	// name is what tables call it.
	name string
	// addr is where it answers. Default: a free address, which the command has to be told with {grpc}.
	addr string
}

// peerFromEnvironment reads PEER, PEER_NAME and PEER_ADDR. PEER is empty if there is none.
func peerFromEnvironment() peer {
	return peer{
		command: os.Getenv("PEER"), name: cmp.Or(os.Getenv("PEER_NAME"), "the peer"), addr: os.Getenv("PEER_ADDR"),
	}
}

// kind is how the lab starts it: with a Redis of its own.
func (p peer) kind() kind { return kind{name: p.name, start: (*lab).startPeer, redis: true} }

func (l *lab) startPeer(ctx context.Context, s *subject) error {
	if l.opts.peer.addr != "" {
		s.addr = l.opts.peer.addr
	}
	command, err := peerCommand(l.opts.peer.command, s)
	if err != nil {
		return err
	}
	// exec makes the service itself, and not a shell, the process whose CPU is measured.
	s.server, err = process.Start(process.Config{Name: s.name, Path: "sh", Args: []string{"-c", "exec " + command}})
	if err != nil {
		return err
	}
	return s.server.AwaitReady(ctx, process.Listens(s.addr))
}

var placeholder = regexp.MustCompile(`\{[a-z0-9_]+\}`)

// peerCommand puts addresses in. Every {port_...} is a free port of its own, the same wherever it is named.
func peerCommand(command string, s *subject) (string, error) {
	values := map[string]string{"{grpc}": s.addr, "{redis}": s.redisAddr}
	for name, addr := range map[string]string{"{grpc_port}": s.addr, "{redis_port}": s.redisAddr} {
		if addr == "" {
			continue
		}
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return "", fmt.Errorf("PEER_ADDR: %w", err)
		}
		values[name] = port
	}
	for _, name := range placeholder.FindAllString(command, -1) {
		if _, known := values[name]; known {
			continue
		}
		if !strings.HasPrefix(name, "{port_") {
			return "", fmt.Errorf("PEER: %s is none of {grpc} {grpc_port} {redis} {redis_port} {port_NAME}", name)
		}
		free, err := process.FreeAddresses(1)
		if err != nil {
			return "", err
		}
		_, values[name], _ = net.SplitHostPort(free[0])
	}
	return placeholder.ReplaceAllStringFunc(command, func(name string) string { return values[name] }), nil
}
