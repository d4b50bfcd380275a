package drill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/honestlimit/ratelimit/internal/drill/journal"
	"github.com/honestlimit/ratelimit/internal/process"
	"github.com/honestlimit/ratelimit/internal/topology"
)

// maxInFlight is the bound on decisions in flight that the service of a drill is given, and held to.
const maxInFlight = 1024

// variables is what those begin with that the service reads its flags from: the caller's are for another service.
const variables = "RATELIMIT_"

// service is a child that serves, and how it is looked at.
type service struct {
	*process.Process
	grpc, admin string
	logPath     string
	client      *http.Client
}

// state is what a drill reads of /state.
type state struct {
	InFlight int           `json:"decisions_in_flight"`
	Redis    *redisState   `json:"redis"`
	Breaker  *breakerState `json:"breaker"`
	Cluster  *struct {
		Slots  int `json:"slots_owned"`
		Shards []struct {
			Slots   int          `json:"slots"`
			Redis   redisState   `json:"redis"`
			Breaker breakerState `json:"breaker"`
		} `json:"shards"`
	} `json:"cluster"`
}

type redisState struct {
	Address   string `json:"address"`
	Lanes     int    `json:"lanes"`
	Connected int    `json:"lanes_connected"`
}

func (r redisState) connected() bool { return r.Lanes > 0 && r.Connected == r.Lanes }

type breakerState struct {
	State string `json:"state"`
}

// connected is whether every lane to the store is up.
func (s state) connected() bool {
	if s.Cluster == nil {
		return s.Redis != nil && s.Redis.connected()
	}
	for _, shard := range s.Cluster.Shards {
		if shard.Slots > 0 && !shard.Redis.connected() {
			return false
		}
	}
	return s.Cluster.Slots == topology.Slots
}

// sample is what of it goes into the journal. A Cluster has no single master; its breaker is the worst of those that
// slots depend on.
func (s state) sample() journal.ServiceSample {
	sample := journal.ServiceSample{InFlight: s.InFlight}
	if s.Redis != nil {
		sample.Address = s.Redis.Address
	}
	if s.Breaker != nil {
		sample.Breaker = s.Breaker.State
	}
	if s.Cluster != nil {
		for _, shard := range s.Cluster.Shards {
			if shard.Slots > 0 && severity(shard.Breaker.State) > severity(sample.Breaker) {
				sample.Breaker = shard.Breaker.State
			}
		}
	}
	return sample
}

// severity orders the states of a breaker; what is none comes first.
func severity(state string) int { return slices.Index([]string{"closed", "half_open", "open"}, state) }

// startService starts serve and waits until it is connected to the store.
func startService(ctx context.Context, cfg Config, dir string, redisFlags, env []string) (*service, error) {
	addrs, err := process.FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	policies := filepath.Join(dir, "policies.yaml")
	if err := os.WriteFile(policies, []byte(cfg.policies()), 0o600); err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	s := &service{
		grpc: addrs[0], admin: addrs[1], logPath: filepath.Join(dir, "service.log"),
		client: &http.Client{Timeout: time.Second},
	}
	log, err := os.Create(s.logPath)
	if err != nil {
		return nil, fmt.Errorf("drill: %w", err)
	}
	args := append([]string{
		"serve", "--policies", policies, "--grpc", s.grpc, "--admin", s.admin, "--deny", "over_limit",
		"--budget", cfg.Budget.String(), "--max-in-flight", strconv.Itoa(maxInFlight), "--drain-delay", "0s",
		"--log-format", "json",
	}, redisFlags...)
	s.Process, err = process.Start(process.Config{
		Name: "ratelimit serve", Path: cfg.Program, Args: args, Env: append(env, cfg.ProgramEnv...), Drop: variables,
		Stdout: log, Stderr: log,
	})
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go func() {
		<-s.Done()
		_ = log.Close() // nothing is left to write
	}()
	if err := s.AwaitReady(ctx, s.connected); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// connected checks that every lane to the store is up.
func (s *service) connected(ctx context.Context) error {
	now, err := s.state(ctx)
	if err != nil {
		return err
	}
	if !now.connected() {
		return errors.New("drill: the service is not connected to the store")
	}
	return nil
}

func (s *service) state(ctx context.Context) (state, error) {
	var now state
	text, err := s.page(ctx, "/state")
	if err != nil {
		return now, err
	}
	return now, json.Unmarshal(text, &now)
}

// page reads one page of the admin port.
func (s *service) page(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.admin+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("drill: %s answers %s", path, resp.Status)
	}
	return io.ReadAll(resp.Body)
}
