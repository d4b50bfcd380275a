package journal

import "time"

// Span is a part of the run in which something stayed the same.
type Span struct {
	From  float64 `json:"from_seconds"`
	To    float64 `json:"to_seconds"`
	Value string  `json:"value"`
}

// spans builds them from looks in order of time; each look counts until the next.
type spans struct {
	list []Span
	end  time.Duration
}

func (s *spans) add(at time.Duration, value string) {
	if n := len(s.list); n > 0 {
		if s.list[n-1].Value == value {
			return
		}
		s.list[n-1].To = at.Seconds()
	}
	s.list = append(s.list, Span{From: at.Seconds(), To: s.end.Seconds(), Value: value})
}

// masters is where the service said that the master is.
func (j *Journal) masters() []Span {
	s := spans{end: j.End}
	for _, look := range j.Service {
		s.add(look.At, look.Address)
	}
	return s.list
}

// breakers is the state of the service's circuit breaker.
func (j *Journal) breakers() []Span {
	s := spans{end: j.End}
	for _, look := range j.Service {
		s.add(look.At, look.Breaker)
	}
	return s.list
}

// What the Sentinels say together about CKQUORUM.
const (
	QuorumReached = "reached"
	QuorumLost    = "lost"
)

// quorums is whether any Sentinel could still order a failover.
func (j *Journal) quorums() []Span {
	s := spans{end: j.End}
	last := map[string]bool{}
	for _, v := range j.Votes {
		last[v.Sentinel] = v.OK
		value := QuorumLost
		for _, ok := range last {
			if ok {
				value = QuorumReached
			}
		}
		s.add(v.At, value)
	}
	return s.list
}
