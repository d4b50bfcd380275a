package cluster

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// view is the Cluster as one of its nodes sees it.
type view struct {
	self    string // the id of that node
	members []member
}

// member is a node as it is seen.
type member struct {
	id      string
	address string   // to dial; empty: it has none
	names   []string // host:port by which nodes may call it
	master  bool
	failing bool // somebody thinks so
	epoch   uint64
	slots   []span
}

// span is a range of slots, both ends included.
type span struct{ first, last uint16 }

// knows tells whether the node of the view has heard of another.
func (v *view) knows(id string) bool {
	return slices.ContainsFunc(v.members, func(m member) bool { return m.id == id })
}

// parseView reads what CLUSTER NODES says, to somebody who asked at the address. Endpoints are the addresses by which
// the operator wants the nodes called, by id; others are called as they are listed.
func parseView(text, asked string, endpoints map[string]string) (view, error) {
	v := view{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		m, flags, err := parseMember(fields, asked)
		if err != nil {
			return view{}, err
		}
		if endpoint := endpoints[m.id]; endpoint != "" && m.address != "" {
			m.address = endpoint
			m.names = append(m.names, endpoint)
		}
		if slices.Contains(flags, "myself") {
			v.self = m.id
		}
		v.members = append(v.members, m)
	}
	if v.self == "" {
		return view{}, fmt.Errorf("cluster: CLUSTER NODES names no node as itself")
	}
	return v, nil
}

// parseMember reads one line: id, address, flags, master, ping, pong, epoch, link, and slots.
func parseMember(fields []string, asked string) (member, []string, error) {
	if len(fields) < 8 {
		return member{}, nil, fmt.Errorf("cluster: a line of CLUSTER NODES has %d fields, want at least 8", len(fields))
	}
	epoch, err := strconv.ParseUint(fields[6], 10, 64)
	if err != nil {
		return member{}, nil, fmt.Errorf("cluster: a configuration epoch in CLUSTER NODES is no number")
	}
	flags := strings.Split(fields[2], ",")
	m := member{
		id: fields[0], epoch: epoch, master: slices.Contains(flags, "master"),
		failing: slices.Contains(flags, "fail") || slices.Contains(flags, "fail?"),
	}
	if !slices.Contains(flags, "noaddr") && !slices.Contains(flags, "handshake") {
		m.names = parseNames(fields[1], asked)
	}
	if len(m.names) > 0 {
		m.address = m.names[0]
	}
	for _, text := range fields[8:] {
		if strings.HasPrefix(text, "[") { // on its way to or from another node, which does not change who owns it
			continue
		}
		s, ok := parseSpan(text)
		if !ok {
			return member{}, nil, fmt.Errorf("cluster: a range of slots in CLUSTER NODES is none")
		}
		m.slots = append(m.slots, s)
	}
	return m, flags, nil
}

// parseNames reads ip:port@bus[,hostname[,more]]. A node that does not know its own IP is where it was asked.
func parseNames(text, asked string) []string {
	addresses, rest, _ := strings.Cut(text, ",")
	hostname, _, _ := strings.Cut(rest, ",")
	listed, _, _ := strings.Cut(addresses, "@")
	if strings.HasSuffix(listed, ":0") {
		return nil
	}
	names := []string{pointed(asked, listed)}
	if hostname != "" && !strings.Contains(hostname, "=") {
		_, port, _ := net.SplitHostPort(names[0])
		names = append(names, net.JoinHostPort(hostname, port))
	}
	return names
}

func parseSpan(text string) (s span, ok bool) {
	low, high, ranged := strings.Cut(text, "-")
	if !ranged {
		high = low
	}
	first, err := strconv.ParseUint(low, 10, 16)
	if err != nil {
		return span{}, false
	}
	last, err := strconv.ParseUint(high, 10, 16)
	if err != nil || first > last || last >= Slots {
		return span{}, false
	}
	return span{uint16(first), uint16(last)}, true
}

// parseEndpoints reads what CLUSTER SLOTS says: for each range of slots its nodes, each with the endpoint that the
// operator prefers, its port and its id. It is the only answer that has the former; what it lacks, and what is odd in
// it, is left out.
func parseEndpoints(reply []any, asked string) map[string]string {
	endpoints := map[string]string{}
	for _, entry := range reply {
		parts, _ := entry.([]any)
		for _, node := range parts[min(2, len(parts)):] {
			fields, _ := node.([]any)
			if len(fields) < 3 {
				continue
			}
			host, _ := fields[0].(string) // nothing, if it is where it was asked
			port, isNumber := fields[1].(int64)
			id, isText := fields[2].(string)
			if !isNumber || !isText || port == 0 || host == "?" {
				continue
			}
			if host == "" {
				host, _, _ = net.SplitHostPort(asked)
			}
			endpoints[id] = net.JoinHostPort(host, strconv.FormatInt(port, 10))
		}
	}
	return endpoints
}
