package redisstore_test

import (
	"testing"
	"time"

	"github.com/honestlimit/ratelimit/internal/redisstore"
	"github.com/honestlimit/ratelimit/internal/redistest"
)

// TestStore_AFleetReconnectsWithoutAStorm: 60 services lose their master, and find another one after two seconds. They
// must not flood the address of the dead one meanwhile, and each must open no more connections to the new one than it
// keeps: that is what is counted here, for each 100 ms.
func TestStore_AFleetReconnectsWithoutAStorm(t *testing.T) {
	const (
		services = 60
		lanes    = 2
		outage   = 20 // stretches of 100 ms
	)
	first, second := redistest.Start(t, redistest.Config{}), redistest.Start(t, redistest.Config{})
	door1 := redistest.NewProxy(t, first.Network(), first.Addr())
	door2 := redistest.NewProxy(t, second.Network(), second.Addr())
	m := newMover(first)
	m.target.Address = door1.Addr()
	// The machine is busy with the fleet: what is merely slow must not be dialed again.
	cfg := redisstore.Config{
		Lanes: lanes, Budget: redistest.Patience, DialTimeout: redistest.Patience, SocketTimeout: redistest.Patience,
	}
	fleet := make([]*rig, services)
	for i := range fleet {
		fleet[i] = run(t, m, cfg)
	}
	for _, r := range fleet {
		r.serving()
	}

	first.Kill() // its door still accepts, as a load balancer would, and hangs up
	lost := time.Now()
	redistest.Eventually(t, "the outage is long enough", func() bool { return time.Since(lost) > outage*100*time.Millisecond })
	m.mu.Lock()
	m.target.Address = door2.Addr()
	close(m.moved)
	m.moved = make(chan struct{})
	m.mu.Unlock()
	moved := time.Now()
	for _, r := range fleet {
		r.serving()
	}
	t.Logf("all %d services serve %v after the news", services, time.Since(moved))
	down, up := histogram(door1.Dials(), lost), histogram(door2.Dials(), moved)
	t.Logf("dials for each 100 ms: at the dead master %v, at the new one %v", down, up)

	// Back-off doubles from 50 ms to 1 s and takes off up to half, so a lane dials at most five times in the first half
	// second and twice a second after that. A storm would be thousands.
	if got, most := sum(down), services*lanes*9; got > most {
		t.Errorf("the dead master was dialed %d times in %d ms, want at most %d", got, outage*100, most)
	}
	for i, n := range down[min(5, len(down)):] {
		if most := services * lanes; n > most {
			t.Errorf("%d dials in the %d. stretch of 100 ms, want at most %d", n, i+5, most)
		}
	}
	redistest.Eventually(t, "no connection is kept to spare", func() bool { return door2.Conns() == services*lanes })

	// One connection each lane, and one to spare where every lane had found its own way.
	if got, most := sum(up), services*(lanes+1); got > most {
		t.Errorf("the new master was dialed %d times, want at most %d", got, most)
	}
}

// histogram counts times after start for each 100 ms.
func histogram(times []time.Time, start time.Time) []int {
	var counts []int
	for _, at := range times {
		i := int(at.Sub(start) / (100 * time.Millisecond))
		if at.Before(start) {
			continue
		}
		for len(counts) <= i {
			counts = append(counts, 0)
		}
		counts[i]++
	}
	return counts
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}
