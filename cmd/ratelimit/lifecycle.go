package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"
)

// listen opens both listeners, or none.
func (s *service) listen() (err error) {
	if s.listener.grpc, err = listen("--grpc", s.flags.GRPC); err != nil {
		return err
	}
	if s.listener.admin, err = listen("--admin", s.flags.Admin); err != nil {
		return errors.Join(err, s.listener.grpc.Close())
	}
	return nil
}

// serve answers on both listeners, and says where. What it returns tells of a listener that fails.
func (s *service) serve(workers *sync.WaitGroup) <-chan error {
	failed := make(chan error, 2)
	workers.Go(func() {
		if err := s.grpc.Serve(s.listener.grpc); err != nil {
			failed <- fmt.Errorf("--grpc: %w", err)
		}
	})
	workers.Go(func() {
		if err := s.admin.Serve(s.listener.admin); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("--admin: %w", err)
		}
	})
	s.serving.Store(true)
	s.setHealth(grpc_health_v1.HealthCheckResponse_SERVING)
	return failed
}

// stop ends the service in the order that loses no request: tell the health checks, go on answering until they have
// been heard, finish what is in flight, and only then close the admin port. Another signal cuts it short.
func (s *service) stop(signals <-chan os.Signal) {
	hurry, cancel := context.WithCancel(context.Background())
	var listening sync.WaitGroup
	listening.Go(func() { hurryOn(hurry, cancel, signals) })
	defer listening.Wait()
	defer cancel() // before the wait, which it ends

	s.serving.Store(false)
	s.setHealth(grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	s.log.Info().Stringer("delay", s.flags.DrainDelay).Msg("draining")
	select {
	case <-time.After(s.flags.DrainDelay):
	case <-hurry.Done():
	}
	s.finish(hurry)
	if err := s.admin.Close(); err != nil {
		s.log.Error().Err(err).Msg("closing the admin port")
	}
}

// hurryOn calls cancel when a signal to stop arrives.
func hurryOn(ctx context.Context, cancel context.CancelFunc, signals <-chan os.Signal) {
	for {
		select {
		case got := <-signals:
			if got != syscall.SIGHUP {
				cancel()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// finish lets requests in flight end, and cuts them off when that takes too long.
func (s *service) finish(hurry context.Context) {
	limit, cancel := context.WithTimeout(hurry, s.flags.ShutdownTimeout)
	defer cancel()
	var cutting sync.WaitGroup
	done := make(chan struct{})
	cutting.Go(func() {
		select {
		case <-done:
		case <-limit.Done():
			s.log.Warn().Msg("requests in flight are cut off")
			s.grpc.Stop()
		}
	})
	s.drain()
	s.grpc.GracefulStop()
	close(done)
	cutting.Wait()
}
