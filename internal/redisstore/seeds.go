package redisstore

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Topology is how the servers of a store stand to each other.
type Topology uint8

// The topologies.
const (
	// Sentinel: one master that Sentinels name, and replicas that wait.
	Sentinel Topology = 1 + iota
	// Cluster: several masters that share the slots, each with replicas.
	Cluster
)

// String is the scheme of a topology's URL.
func (t Topology) String() string {
	switch t {
	case Sentinel:
		return "sentinel"
	case Cluster:
		return "cluster"
	default:
		return fmt.Sprintf("topology(%d)", uint8(t))
	}
}

// Default ports of what a URL names.
const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// Seeds are the servers that know where the masters are, as a URL names them. They need not be all there are.
type Seeds struct {
	Topology Topology
	// Addresses are host:port of Sentinels, or of nodes of a Cluster.
	Addresses []string
	// Master is the name by which Sentinels know the master; empty for a Cluster.
	Master string
	// Username and Password are those of the data nodes.
	Username string
	Password Secret
	// DB is the database's number; always 0 in a Cluster.
	DB int
}

// Admit returns access with the account that the URL names, unless access names one itself.
func (s Seeds) Admit(access Access) Access {
	access.Username = cmp.Or(access.Username, s.Username)
	if access.Password == "" && access.PasswordFile == "" {
		access.Password = s.Password
	}
	return access
}

// HasSeeds tells whether the URL is one that ParseSeeds reads, and not one for ParseURL.
func HasSeeds(raw string) bool {
	return strings.HasPrefix(raw, "sentinel://") || strings.HasPrefix(raw, "cluster://")
}

// ParseSeeds reads sentinel://[user[:password]@]host[:port],.../master[?db=N] and
// cluster://[user[:password]@]host[:port],.... Its errors never show the URL, which may hold a password.
func ParseSeeds(raw string) (Seeds, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	s := Seeds{}
	port := redisPort
	switch scheme {
	case "sentinel":
		s.Topology, port = Sentinel, sentinelPort
	case "cluster":
		s.Topology = Cluster
	default:
		return Seeds{}, urlError("must start with sentinel:// or cluster://")
	}
	rest, err := s.parseUser(rest)
	if err != nil {
		return Seeds{}, err
	}
	hosts, path, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(hosts, "?#") {
		return Seeds{}, urlError("has a ? or # before its path")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		address, err := seedAddress(host, port)
		if err != nil {
			return Seeds{}, err
		}
		s.Addresses = append(s.Addresses, address)
	}
	return s, s.parsePath(path)
}

// parseUser takes the account off the front of rest. The host begins after the last @, which no host contains.
func (s *Seeds) parseUser(rest string) (string, error) {
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return rest, nil
	}
	name, password, _ := strings.Cut(rest[:at], ":")
	user, err := url.PathUnescape(name)
	if err != nil {
		return "", urlError("has a user that is not percent-encoded")
	}
	secret, err := url.PathUnescape(password)
	if err != nil || strings.ContainsAny(rest[:at], "/#?@") {
		return "", urlError("cannot be parsed; characters like / # @ % in a password must be percent-encoded")
	}
	s.Username, s.Password = user, Secret(secret)
	return rest[at+1:], nil
}

// parsePath reads what follows the hosts.
func (s *Seeds) parsePath(path string) (err error) {
	path, query, _ := strings.Cut(path, "?")
	if s.Topology == Cluster {
		if path != "" || query != "" {
			return urlError("names a path or parameters, of which a Cluster has none: its only database is 0")
		}
		return nil
	}
	if path == "" || strings.ContainsAny(path, "/#") {
		return urlError("must end with the master's name as the Sentinels know it: sentinel://host,host/name")
	}
	s.Master = path
	db, found := strings.CutPrefix(query, "db=")
	if query != "" && !found {
		return urlError("has a parameter other than db after its ?")
	}
	s.DB, err = parseDB(db)
	return err
}

func seedAddress(host, port string) (string, error) {
	if host == "" {
		return "", urlError("names no host, or has a comma too many")
	}
	name, given, err := net.SplitHostPort(host)
	if err != nil { // no port, or a bare IPv6 address
		name, given = strings.Trim(host, "[]"), port
		if strings.Contains(name, ":") && !strings.HasPrefix(host, "[") {
			return "", urlError("has an IPv6 address without brackets, or more than one port at a host")
		}
	}
	if n, err := strconv.Atoi(given); err != nil || n < 1 || n > 65535 || name == "" {
		return "", urlError("has a host whose port is no number from 1 to 65535")
	}
	return net.JoinHostPort(name, given), nil
}
