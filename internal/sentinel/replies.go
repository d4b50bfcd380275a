package sentinel

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// description is what Sentinel says of an instance: fields and their values.
type description map[string]string

// masterState is what SENTINEL MASTER says, as far as it matters here.
type masterState struct {
	epoch  uint64
	flags  flags
	others int // further Sentinels that it knows
	quorum int
}

// flags are the words that Sentinel attaches to an instance.
type flags []string

func (f flags) has(flag string) bool { return slices.Contains(f, flag) }

// down tells whether the instance cannot be used, in that Sentinel's opinion.
func (f flags) down() bool { return f.has("s_down") || f.has("o_down") || f.has("disconnected") }

// peer is another Sentinel, as one tells of it.
type peer struct{ id, address string }

// parseAddress reads the reply of SENTINEL GET-MASTER-ADDR-BY-NAME.
func parseAddress(reply any) (string, error) {
	switch pair := reply.(type) {
	case nil:
		return "", ErrUnknownMaster
	case refusal:
		return "", refused(pair)
	case []any:
		if len(pair) != 2 {
			return "", errProtocol
		}
		return joinAddress(text(pair[0]), text(pair[1]))
	default:
		return "", errProtocol
	}
}

// parseMaster reads the reply of SENTINEL MASTER.
func parseMaster(reply any) (masterState, error) {
	d, err := parseDescription(reply)
	if err != nil {
		return masterState{}, err
	}
	epoch, err := strconv.ParseUint(d["config-epoch"], 10, 64)
	if err != nil {
		return masterState{}, fmt.Errorf("%w: config-epoch is no number", errProtocol)
	}
	return masterState{
		epoch: epoch, flags: d.flags(), others: d.number("num-other-sentinels"), quorum: d.number("quorum"),
	}, nil
}

// maxReplicas is how many replicas are remembered at the most.
const maxReplicas = 64

// parseReplicas reads the reply of SENTINEL REPLICAS. What has no usable address is left out.
func parseReplicas(reply any) ([]Replica, error) {
	all, err := parseDescriptions(reply)
	if err != nil {
		return nil, err
	}
	var replicas []Replica
	for _, d := range all {
		address, err := joinAddress(d["ip"], d["port"])
		if err != nil || len(replicas) == maxReplicas {
			continue
		}
		replicas = append(replicas, Replica{
			Address: address, Healthy: !d.flags().down(), Linked: d["master-link-status"] == "ok",
			Offset: int64(d.number("slave-repl-offset")), Priority: d.number("slave-priority"),
			LinkDown: time.Duration(d.number("master-link-down-time")) * time.Millisecond,
		})
	}
	return replicas, nil
}

// parsePeers reads the reply of SENTINEL SENTINELS. What has no usable address is left out.
func parsePeers(reply any) ([]peer, error) {
	all, err := parseDescriptions(reply)
	if err != nil {
		return nil, err
	}
	var peers []peer
	for _, d := range all {
		if address, err := joinAddress(d["ip"], d["port"]); err == nil {
			peers = append(peers, peer{id: parseID(d["runid"]), address: address})
		}
	}
	return peers, nil
}

// parseID reads the reply of SENTINEL MYID; empty if there is none, as before Redis 6.2.
func parseID(reply any) string {
	id := text(reply)
	if len(id) != 40 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

// parseQuorum reads the reply of SENTINEL CKQUORUM.
func parseQuorum(reply any) (Quorum, error) {
	switch r := reply.(type) {
	case string:
		return Quorum{OK: true, Text: clean(r)}, nil
	case refusal:
		if r.is("NOQUORUM") {
			return Quorum{Text: clean(string(r))}, nil
		}
		return Quorum{}, refused(r)
	default:
		return Quorum{}, errProtocol
	}
}

func parseDescriptions(reply any) ([]description, error) {
	list, ok := reply.([]any)
	if !ok {
		_, err := parseDescription(reply)
		return nil, err
	}
	all := make([]description, 0, len(list))
	for _, one := range list {
		d, err := parseDescription(one)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

func parseDescription(reply any) (description, error) {
	if no, ok := reply.(refusal); ok {
		return nil, refused(no)
	}
	words, ok := reply.([]any)
	if !ok || len(words)%2 != 0 {
		return nil, errProtocol
	}
	d := make(description, len(words)/2)
	for pair := range slices.Chunk(words, 2) {
		d[text(pair[0])] = text(pair[1])
	}
	return d, nil
}

// number is 0 for what is missing or no number that makes sense.
func (d description) number(field string) int {
	n, err := strconv.Atoi(d[field])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

func (d description) flags() flags { return strings.Split(d["flags"], ",") }

// text is empty for a reply that is no text.
func text(reply any) string {
	s, _ := reply.(string)
	return s
}

func joinAddress(host, port string) (string, error) {
	address := net.JoinHostPort(host, port)
	if !isAddress(address) {
		return "", fmt.Errorf("%w: no address", errProtocol)
	}
	return address, nil
}

// refused says what an error reply means.
func refused(r refusal) error {
	switch {
	case strings.HasPrefix(string(r), "ERR No such master"):
		return ErrUnknownMaster
	case r.is("NOAUTH"):
		return fmt.Errorf("%w: the Sentinel asks for a password (NOAUTH)", errAccess)
	case r.is("NOPERM"):
		return fmt.Errorf("%w: the account may not do this: %w", errAccess, r)
	default:
		return r
	}
}

// maxText is how much of what a Sentinel says is shown to people, in bytes.
const maxText = 160

// clean makes what a Sentinel said fit for a log line.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s[:min(len(s), maxText)])
	return s
}
