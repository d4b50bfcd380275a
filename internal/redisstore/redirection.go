package redisstore

import (
	"fmt"
	"strings"

	"github.com/honestlimit/ratelimit/pkg/failure"
)

// Redirection is the answer of a Cluster's node that did not execute a call, since the slot is not its own, or not yet,
// or no longer wholly. Such an answer is no evidence against the node.
type Redirection struct {
	Kind RedirectionKind
	// Address is where Moved and Ask point, as the server writes it: host:port, whose host may be empty, a "?", or an
	// IPv6 address without brackets.
	Address string
	// Cause is what the call fails of if it is not sent elsewhere.
	Cause failure.Cause
	// Shared tells that the command carried other calls too, one of which may be the reason.
	Shared bool
}

// RedirectionKind says why a node did not execute a call.
type RedirectionKind uint8

// The kinds.
const (
	// Moved: another node owns the slot.
	Moved RedirectionKind = 1 + iota
	// Ask: the slot is on its way to another node, and no key of the call is here any more.
	Ask
	// TryAgain: the slot is on its way, and some of the call's keys are here and others are there.
	TryAgain
	// ClusterDown: the node believes that the Cluster cannot serve the slot.
	ClusterDown
)

// RedirectionKinds lists every kind, in order.
func RedirectionKinds() []RedirectionKind {
	return []RedirectionKind{Moved, Ask, TryAgain, ClusterDown}
}

// String is the first word of the answer, in lower case.
func (k RedirectionKind) String() string {
	switch k {
	case Moved:
		return "moved"
	case Ask:
		return "ask"
	case TryAgain:
		return "tryagain"
	case ClusterDown:
		return "clusterdown"
	default:
		return fmt.Sprintf("redirection(%d)", uint8(k))
	}
}

// redirection reads an error reply; nil if it is none that sends a call elsewhere.
func redirection(err error) *Redirection {
	if err == nil || !isReply(err) {
		return nil
	}
	word, rest, _ := strings.Cut(err.Error(), " ")
	switch word {
	case "TRYAGAIN":
		return &Redirection{Kind: TryAgain, Cause: failure.CauseTryAgain}
	case "CLUSTERDOWN":
		return &Redirection{Kind: ClusterDown, Cause: failure.CauseClusterDown}
	case "MOVED", "ASK":
	default:
		return nil
	}
	_, address, found := strings.Cut(rest, " ")
	if !found {
		return nil
	}
	to := &Redirection{Kind: Moved, Address: address, Cause: failure.CauseMoved}
	if word == "ASK" {
		to.Kind = Ask
	}
	return to
}
