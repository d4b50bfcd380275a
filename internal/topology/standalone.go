package topology

import "context"

// Standalone is one server without replicas.
type Standalone struct{ *Set }

// StartStandalone starts a server and waits until it answers. Of Config, what concerns replicas, Sentinels and Clusters
// has no effect. If ctx ends first, nothing is left running.
func StartStandalone(ctx context.Context, cfg Config) (*Standalone, error) {
	cfg.MinReplicas = number(cfg.MinReplicas, 0)
	s, err := newSet(cfg, 0)
	if err != nil {
		return nil, err
	}
	t := &Standalone{Set: s}
	healthy := func(ctx context.Context) error { return t.Data().client.Ping(ctx).Err() }
	if err := s.open(ctx, "a server", t.build, healthy); err != nil {
		return nil, err
	}
	return t, nil
}

// Data is the server.
func (t *Standalone) Data() *Node { return t.Node(dataName(0)) }

// URL is the address as the service takes it, without credentials.
func (t *Standalone) URL() string {
	if t.tls != nil {
		return "rediss://" + t.Data().Addr()
	}
	return "redis://" + t.Data().Addr()
}

func (t *Standalone) build(ctx context.Context) error {
	_, err := t.run(ctx, dataName(0), t.dataRecipe(0))
	return err
}
