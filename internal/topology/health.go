package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Healthy checks the running nodes, frozen ones among them: one is master, all others are its replicas and online, and
// every Sentinel has that same picture, knows every other Sentinel and finds a quorum. Nodes that were killed are no
// fault, though replicas may be missing to Redis.
func (t *Sentinel) Healthy(ctx context.Context) error {
	master, err := t.Master(ctx)
	if err != nil {
		return err
	}
	if err := t.replicates(ctx, master); err != nil {
		return err
	}
	var errs []error
	for _, s := range running(t.Sentinels()) {
		if err := t.sees(ctx, s, master); err != nil {
			errs = append(errs, fmt.Errorf("topology: %s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}

// replicates checks the data nodes.
func (t *Sentinel) replicates(ctx context.Context, master *Node) error {
	info, err := master.info(ctx, "replication")
	if err != nil {
		return err
	}
	if info["role"] != "master" {
		return fmt.Errorf("topology: %s is no master", master.name)
	}
	online := 0
	for key, value := range info {
		if strings.HasPrefix(key, "slave") && strings.Contains(value, "state=online") {
			online++
		}
	}
	others := running(t.Data())
	if online != len(others)-1 {
		return fmt.Errorf("topology: %d of %d replicas of %s are online", online, len(others)-1, master.name)
	}
	for _, n := range others {
		if n == master {
			continue
		}
		info, err := n.info(ctx, "replication")
		if err != nil {
			return err
		}
		if info["role"] != "slave" || info["master_link_status"] != "up" {
			return fmt.Errorf("topology: %s is a %s with its link %s", n.name, info["role"], info["master_link_status"])
		}
	}
	return nil
}

// sees checks what one Sentinel thinks.
func (t *Sentinel) sees(ctx context.Context, s, master *Node) error {
	addr, err := s.names(ctx)
	if err != nil {
		return err
	}
	if addr != master.Addr() {
		return fmt.Errorf("names %s as master, not %s", addr, master.name)
	}
	replicas, err := s.flags(ctx, "replicas")
	if err != nil {
		return err
	}
	sentinels, err := s.flags(ctx, "sentinels")
	if err != nil {
		return err
	}
	for _, n := range running(t.Data()) {
		if n != master && replicas[n.Addr()] != "slave" {
			return fmt.Errorf("thinks that %s is %q", n.name, replicas[n.Addr()])
		}
	}
	for _, n := range running(t.Sentinels()) {
		if n != s && sentinels[n.Addr()] != "sentinel" {
			return fmt.Errorf("thinks that %s is %q", n.name, sentinels[n.Addr()])
		}
	}
	return s.client.Do(ctx, "sentinel", "ckquorum", MasterName).Err()
}

// names is the address of the master in a Sentinel's eyes.
func (n *Node) names(ctx context.Context) (string, error) {
	addr, err := n.client.Do(ctx, "sentinel", "get-master-addr-by-name", MasterName).StringSlice()
	if err != nil {
		return "", err
	}
	if len(addr) != 2 {
		return "", fmt.Errorf("answers with %d words for an address", len(addr))
	}
	return net.JoinHostPort(addr[0], addr[1]), nil
}

// flags is what a Sentinel thinks of its replicas or its fellow Sentinels, by address.
func (n *Node) flags(ctx context.Context, of string) (map[string]string, error) {
	reply, err := n.client.Do(ctx, "sentinel", of, MasterName).Slice()
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, entry := range reply {
		fields := pairs(entry)
		all[net.JoinHostPort(fields["ip"], fields["port"])] = fields["flags"]
	}
	return all, nil
}

// pairs reads the flat list of names and values that Sentinels answer with.
func pairs(reply any) map[string]string {
	list, _ := reply.([]any)
	fields := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		fields[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return fields
}

// info is a section of INFO.
func (n *Node) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := n.client.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("topology: %s: %w", n.name, err)
	}
	return lines(text), nil
}

// lines reads name:value lines.
func lines(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

func running(nodes []*Node) []*Node {
	var alive []*Node
	for _, n := range nodes {
		if n.Running() {
			alive = append(alive, n)
		}
	}
	return alive
}
