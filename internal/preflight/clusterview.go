package preflight

import (
	"net"
	"slices"
	"strconv"
	"strings"
)

// slots is how many a Cluster has.
const slots = 16384

// clusterView is what one node says of its Cluster.
type clusterView struct {
	// info is CLUSTER INFO.
	info  map[string]string
	peers []peer
}

// peer is a line of CLUSTER NODES.
type peer struct {
	id string
	// address is its IP and port. name is its host name and port, empty if it announces none.
	address, name string
	flags         []string
	// masterID is empty for a master.
	masterID string
	epoch    int64
	// ranges are the slots it owns, as Redis writes them: 0-5460. moving are slots on their way in or out.
	ranges, moving []string
	linked         bool
}

func (p peer) is(flag string) bool { return slices.Contains(p.flags, flag) }

// owns tells whether the slot is the peer's.
func (p peer) owns(slot int) bool {
	return slices.ContainsFunc(p.ranges, func(r string) bool {
		from, to := slotRange(r)
		return from <= slot && slot <= to
	})
}

// slotRange reads 5-9 or 5; an empty range if it is neither.
func slotRange(r string) (from, to int) {
	low, high, wide := strings.Cut(r, "-")
	if !wide {
		high = low
	}
	from, err1 := strconv.Atoi(low)
	to, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil {
		return 1, 0
	}
	return from, to
}

// parsePeers reads CLUSTER NODES. Lines that it does not understand, and nodes without an address, are left out.
func parsePeers(reply string) []peer {
	var all []peer
	for line := range strings.Lines(reply) {
		words := strings.Fields(line)
		if len(words) < 8 {
			continue
		}
		p := peer{
			id: words[0], flags: strings.Split(words[2], ","),
			masterID: strings.TrimPrefix(words[3], "-"), linked: words[7] == "connected",
		}
		p.address, p.name = peerAddress(words[1])
		p.epoch, _ = strconv.ParseInt(words[6], 10, 64)
		for _, r := range words[8:] {
			if strings.HasPrefix(r, "[") {
				p.moving = append(p.moving, r)
				continue
			}
			p.ranges = append(p.ranges, r)
		}
		if p.address != "" {
			all = append(all, p)
		}
	}
	return all
}

// peerAddress reads ip:port@busport,hostname. A node that is being met or was lost has no port.
func peerAddress(word string) (address, name string) {
	endpoint, rest, _ := strings.Cut(word, "@")
	_, rest, _ = strings.Cut(rest, ",")
	host, _, _ := strings.Cut(rest, ",")
	at := strings.LastIndexByte(endpoint, ':')
	if at <= 0 || endpoint[at+1:] == "0" {
		return "", ""
	}
	port := endpoint[at+1:]
	if host != "" && !strings.Contains(host, "=") {
		name = net.JoinHostPort(host, port)
	}
	return net.JoinHostPort(strings.Trim(endpoint[:at], "[]"), port), name
}

// self is the node's own line.
func (c clusterView) self() (peer, bool) {
	i := slices.IndexFunc(c.peers, func(p peer) bool { return p.is("myself") })
	if i < 0 {
		return peer{}, false
	}
	return c.peers[i], true
}

// owners is the map of slots that the node believes in.
func (c clusterView) owners() string {
	var all []string
	for _, p := range c.peers {
		if len(p.ranges) > 0 {
			all = append(all, p.id+" "+strings.Join(p.ranges, " "))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}
