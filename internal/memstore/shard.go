package memstore

import (
	"container/heap"
	"sync"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// sweepEach is how many full buckets a new one sweeps away at most: more than it adds, so that garbage cannot pile
// up, and few enough that no request pays for others.
const sweepEach = 4

// bucket is one kept bucket.
type bucket struct {
	key       string
	state     limit.State
	full      int64 // when it is full again and may be forgotten, in microseconds since the epoch
	place     int32 // in the queue
	algorithm limit.Algorithm
}

// shard is a part of the buckets under one lock. queue orders them by the time at which they are full again.
type shard struct {
	mu      sync.Mutex
	buckets map[string]*bucket
	queue   queue
	most    int
}

func (s *shard) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.buckets)
}

func (s *shard) add(b *bucket) {
	s.buckets[b.key] = b
	heap.Push(&s.queue, b)
}

func (s *shard) moved(b *bucket) {
	heap.Fix(&s.queue, int(b.place))
}

// dropped counts buckets that are gone.
type dropped struct{ expired, evicted uint64 }

// makeRoom drops a few buckets that are full again, and if there is still no room for one more, the one nearest to
// full. It spares those that the request at hand works on, even if that leaves too many.
func (s *shard) makeRoom(now int64, inUse []pending) dropped {
	var gone dropped
	var spared []*bucket
	for s.queue.Len() > 0 && gone.expired < sweepEach {
		b := s.queue[0]
		if b.full > now && len(s.buckets) < s.most {
			break
		}
		heap.Pop(&s.queue)
		switch {
		case works(inUse, b):
			spared = append(spared, b)
			continue
		case b.full <= now:
			gone.expired++
		default:
			gone.evicted++
		}
		delete(s.buckets, b.key)
	}
	for _, b := range spared {
		heap.Push(&s.queue, b)
	}
	return gone
}

func works(inUse []pending, b *bucket) bool {
	for i := range inUse {
		if inUse[i].bucket == b {
			return true
		}
	}
	return false
}

// queue is a heap of buckets by the time at which they are full again.
type queue []*bucket

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].full < q[j].full }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = int32(i), int32(j)
}

func (q *queue) Push(x any) {
	b := x.(*bucket)
	b.place = int32(len(*q))
	*q = append(*q, b)
}

func (q *queue) Pop() any {
	old := *q
	last := len(old) - 1
	b := old[last]
	old[last] = nil
	*q = old[:last]
	return b
}
