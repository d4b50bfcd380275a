package topology_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redistest"
	"github.com/honestlimit/ratelimit/internal/topology"
)

func TestNetwork_CutSwallowsAndHealDelivers(t *testing.T) {
	t.Parallel()
	s := gatedServer(t)
	old := dial(t, s)
	old.says("PING", "+PONG")

	if err := s.Network().Partition([]string{topology.Clients}, []string{"redis-0"}); err != nil {
		t.Fatal(err)
	}
	young := dial(t, s)
	for name, c := range map[string]*conn{"an old": old, "a new": young} {
		c.send("PING")
		if answer, err := c.wait(50 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("through the cut, %s connection says %q, %v, want nothing", name, answer, err)
		}
	}
	if err := s.Data().Client().Ping(within(t)).Err(); err != nil {
		t.Errorf("an observer does not reach the node: %v", err)
	}

	if err := s.Network().Heal(); err != nil {
		t.Fatal(err)
	}
	if answer, err := old.wait(patience); answer != "+PONG" || err != nil {
		t.Errorf("after the cut, the old connection says %q, %v, want +PONG", answer, err)
	}
	if answer, err := young.wait(patience); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the cut, the new connection says %q, %v, want an end", answer, err)
	}
	dial(t, s).says("PING", "+PONG")
}

func TestNetwork_EndsReachTheOtherSide(t *testing.T) {
	t.Parallel()
	s := gatedServer(t)
	c := dial(t, s)
	c.says("CLIENT SETNAME visitor", "+OK")
	_ = c.Close()
	await(t, "the server to see its client go", func(ctx context.Context) error {
		list, err := s.Data().Client().ClientList(ctx).Result()
		if err == nil && strings.Contains(list, "name=visitor") {
			err = errors.New("it is still there")
		}
		return err
	})
	if err := s.Data().Kill(); err != nil {
		t.Fatal(err)
	}
	if answer, err := dial(t, s).wait(patience); err == nil {
		t.Errorf("a dead server says %q", answer)
	}
}

func TestNetwork_CountsAccepts(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t, topology.Config{Gated: true})
	before := time.Now()
	for range 3 {
		c, err := net.Dial("tcp", s.Node("redis-0").Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	await(t, "the gate to accept", func(context.Context) error {
		from := map[string]int{}
		for _, a := range s.Node("redis-0").Accepts() {
			if a.From == topology.Clients && a.At.Before(before) {
				t.Errorf("a client was there before there was one, at %v", a.At)
			}
			from[a.From]++
		}
		for _, name := range []string{"redis-1", "redis-2", "sentinel-0", "sentinel-1", "sentinel-2"} {
			if from[name] == 0 {
				return fmt.Errorf("nothing came from %s: %v", name, from)
			}
		}
		if from[topology.Clients] != 3 {
			return fmt.Errorf("%d connections of clients, want 3", from[topology.Clients])
		}
		return nil
	})
}

func TestNetwork_ThrottledReplicaLags(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t, topology.Config{Gated: true})
	slow, swift := s.Node("redis-1"), s.Node("redis-2")
	// A report of what arrived takes 30 bytes a second, too.
	if err := s.Network().Throttle(slow.Name(), 1000); err != nil {
		t.Fatal(err)
	}
	master := s.Node("redis-0").Client()
	for i := range 100 {
		if err := master.Set(within(t), strconv.Itoa(i), strings.Repeat("x", 10000), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	end := offset(t, s.Node("redis-0"), "master_repl_offset")
	await(t, "the swift replica", func(context.Context) error {
		if at := offset(t, swift, "slave_repl_offset"); at < end {
			return fmt.Errorf("it is at %d of %d", at, end)
		}
		return nil
	})
	// At 1000 bytes/s a million bytes take a quarter of an hour; the buffers on the way hold a part.
	if at := offset(t, slow, "slave_repl_offset"); end-at < 500_000 {
		t.Errorf("the slow replica lacks only %d bytes", end-at)
	}
	if err := s.Network().Throttle(slow.Name(), 0); err != nil {
		t.Fatal(err)
	}
	await(t, "the slow replica", func(context.Context) error {
		if at := offset(t, slow, "slave_repl_offset"); at < end {
			return fmt.Errorf("it is at %d of %d", at, end)
		}
		return nil
	})
}

func TestNetwork_DelayHoldsAnswersBack(t *testing.T) {
	t.Parallel()
	s := gatedServer(t)
	c := dial(t, s)
	const delay = 100 * time.Millisecond
	if err := s.Network().Delay("redis-0", delay); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	c.says("PING", "+PONG")
	if took := time.Since(start); took < delay {
		t.Errorf("an answer came after %v, want %v at least", took, delay)
	}
	// The end of a delay ends it for what is held back, too: nobody waits for an hour here.
	if err := s.Network().Delay("redis-0", time.Hour); err != nil {
		t.Fatal(err)
	}
	c.send("PING")
	if answer, err := c.wait(delay); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("within the delay the node says %q, %v, want nothing", answer, err)
	}
	if err := s.Network().Delay("redis-0", 0); err != nil {
		t.Fatal(err)
	}
	if answer, err := c.wait(patience); answer != "+PONG" || err != nil {
		t.Errorf("after the delay the node says %q, %v, want +PONG", answer, err)
	}
}

func TestNetwork_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	plain, err := topology.StartStandalone(within(t), topology.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	gated := gatedServer(t)
	for name, err := range map[string]error{
		"a set without gates": plain.Network().Heal(),
		"an unknown node":     gated.Network().Isolate("redis-9"),
		"a negative rate":     gated.Network().Throttle("redis-0", -1),
		"a negative delay":    gated.Network().Delay("redis-0", -1),
	} {
		if err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func gatedServer(t *testing.T) *topology.Standalone {
	t.Helper()
	s, err := topology.StartStandalone(within(t), topology.Config{Dir: t.TempDir(), Gated: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func offset(t *testing.T, n *topology.Node, name string) int {
	t.Helper()
	text := n.Client().Info(within(t), "replication").Val()
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			at, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("%s has no %s", n.Name(), name)
	return 0
}

// conn speaks Redis' inline commands.
type conn struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func dial(t *testing.T, s *topology.Standalone) *conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Data().Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &conn{Conn: c, t: t, r: bufio.NewReader(c)}
}

func (c *conn) send(command string) {
	c.t.Helper()
	if _, err := io.WriteString(c, command+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
}

// wait reads a line.
func (c *conn) wait(d time.Duration) (string, error) {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.r.ReadString('\n')
	return strings.TrimSpace(line), err
}

func (c *conn) says(command, want string) {
	c.t.Helper()
	c.send(command)
	if got, err := c.wait(patience); got != want || err != nil {
		c.t.Fatalf("%s: %q, %v, want %q", command, got, err, want)
	}
}
