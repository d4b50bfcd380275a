package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Migration is a slot on its way from one master of a Cluster to another. While it lasts, the old owner answers for the
// keys that it still has, and sends clients to the new one (ASK) for all others.
type Migration struct {
	cluster  *Cluster
	slot     int
	from, to *Node
}

// BeginMigration opens the slot's way: from gives it away, and to takes it in. from must own it.
func (t *Cluster) BeginMigration(ctx context.Context, slot int, from, to *Node) (*Migration, error) {
	m := &Migration{cluster: t, slot: slot, from: from, to: to}
	giver, err := from.view(ctx)
	if err != nil {
		return nil, err
	}
	taker, err := to.view(ctx)
	if err != nil {
		return nil, err
	}
	// The taker first: the giver sends clients there as soon as it knows.
	if err := m.set(ctx, to, "importing", giver.myself().id); err != nil {
		return nil, err
	}
	return m, m.set(ctx, from, "migrating", taker.myself().id)
}

// MoveKeys moves up to n keys, and returns how many it moved: fewer than n if no more are left.
func (m *Migration) MoveKeys(ctx context.Context, n int) (int, error) {
	keys, err := m.from.client.ClusterGetKeysInSlot(ctx, m.slot, n).Result()
	if err != nil || len(keys) == 0 {
		return 0, m.fault(err)
	}
	host, port, _ := net.SplitHostPort(m.to.Direct())
	args := []any{"migrate", host, port, "", 0, clientTimeout.Milliseconds()}
	if login := m.cluster.OperatorLogin(); login != (Login{}) {
		args = append(args, "auth2", login.Username, login.Password)
	}
	args = append(args, "keys")
	for _, key := range keys {
		args = append(args, key)
	}
	return len(keys), m.fault(m.from.client.Do(ctx, args...).Err())
}

// Finish moves the keys that are left, and makes the new owner known to every master that runs.
func (m *Migration) Finish(ctx context.Context) error {
	const batch = 100
	for n := batch; n == batch; {
		var err error
		if n, err = m.MoveKeys(ctx, batch); err != nil {
			return err
		}
	}
	taker, err := m.to.view(ctx)
	if err != nil {
		return err
	}
	// The taker first: a slot must never have no owner. The others would learn by gossip, later.
	errs := []error{m.set(ctx, m.to, "node", taker.myself().id), m.set(ctx, m.from, "node", taker.myself().id)}
	for _, e := range taker {
		n := m.cluster.at(e.addr)
		if n != nil && n.Running() && n != m.to && n != m.from && e.master == "-" {
			errs = append(errs, m.set(ctx, n, "node", taker.myself().id))
		}
	}
	return errors.Join(errs...)
}

// MigrateSlot moves the slot with its keys from its owner to another master, while clients go on.
func (t *Cluster) MigrateSlot(ctx context.Context, slot int, from, to *Node) error {
	m, err := t.BeginMigration(ctx, slot, from, to)
	if err != nil {
		return err
	}
	return m.Finish(ctx)
}

// Reshard moves n of from's slots, the lowest first, one after the other.
func (t *Cluster) Reshard(ctx context.Context, n int, from, to *Node) error {
	v, err := from.view(ctx)
	if err != nil {
		return err
	}
	for slot, owner := range v.owners() {
		if n == 0 {
			return nil
		}
		if owner != from.Addr() {
			continue
		}
		if err := t.MigrateSlot(ctx, slot, from, to); err != nil {
			return err
		}
		n--
	}
	if n > 0 {
		return fmt.Errorf("topology: %s has too few slots to give away: %d are missing", from.name, n)
	}
	return nil
}

func (m *Migration) set(ctx context.Context, n *Node, state, id string) error {
	if err := n.client.Do(ctx, "cluster", "setslot", m.slot, state, id).Err(); err != nil {
		return m.fault(fmt.Errorf("%s: setslot %s: %w", n.name, state, err))
	}
	return nil
}

func (m *Migration) fault(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("topology: slot %d from %s to %s: %w", m.slot, m.from.name, m.to.name, err)
}
