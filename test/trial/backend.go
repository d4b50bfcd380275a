package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/honestlimit/ratelimit/test/backend"
)

// headerTimeout bounds how long a caller may take to send its headers.
const headerTimeout = 5 * time.Second

type backendCmd struct {
	Name string `help:"Which service to be." enum:"pdftalk,resumint" required:""`
	Addr string `help:"Where to listen." default:"127.0.0.1:8080"`
}

// Run serves until ctx ends.
func (c *backendCmd) Run(ctx context.Context) error {
	s, err := serveBackend(c.Name, c.Addr)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return s.stop()
}

// backendServer is a stand-in that listens.
type backendServer struct {
	addr   string
	server *http.Server
	served chan error
}

// serveBackend starts the stand-in of that name; whoever calls it must stop it.
func serveBackend(name, addr string) (*backendServer, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", name, err)
	}
	s := &backendServer{
		addr:   listener.Addr().String(),
		server: &http.Server{Handler: backend.New(name), ReadHeaderTimeout: headerTimeout},
		served: make(chan error, 1),
	}
	go func() { s.served <- s.server.Serve(listener) }()
	return s, nil
}

// stop closes the listener and every connection: nothing of worth is lost with a stand-in's work.
func (s *backendServer) stop() error {
	err := s.server.Close()
	if served := <-s.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
