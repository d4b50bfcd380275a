package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/honestlimit/ratelimit/internal/redisstore"
)

// Passwords come from the environment or a file. There is no flag for them: flags are for everyone to see in `ps`.
const (
	passwordVariable         = "RATELIMIT_REDIS_PASSWORD"
	sentinelPasswordVariable = "RATELIMIT_SENTINEL_PASSWORD"
)

// redisFlags say where Redis is and how to be let in. Every command that talks to Redis has the same.
type redisFlags struct {
	Redis             string   `group:"Redis" placeholder:"URL" help:"redis://host:port/db, rediss:// for TLS, unix:///path, sentinel://host:port,host:port/master, or cluster://host:port,host:port. Without it serve keeps the limits in its process."`
	RedisUsername     string   `group:"Redis" placeholder:"NAME" help:"ACL user."`
	RedisPasswordFile string   `group:"Redis" placeholder:"FILE" help:"File that holds the password, read again for every connection. Or set ${password}."`
	RedisTLS          bool     `name:"redis-tls" group:"Redis" help:"Speak TLS to the servers of a sentinel:// or cluster:// URL."`
	RedisCA           string   `name:"redis-ca" group:"Redis" placeholder:"FILE" help:"PEM authorities that a server is verified by (those of the system)."`
	RedisCert         string   `group:"Redis" placeholder:"FILE" help:"PEM certificate to show to the server."`
	RedisKey          string   `group:"Redis" placeholder:"FILE" help:"PEM key of --redis-cert."`
	RedisNAT          []string `name:"redis-nat" group:"Redis" placeholder:"FROM=TO" help:"Where a server is really reached: the host:port that Sentinels or the Cluster announce, and the one to dial. May be repeated."`

	SentinelUsername     string `group:"Redis" placeholder:"NAME" help:"ACL user of the Sentinels."`
	SentinelPasswordFile string `group:"Redis" placeholder:"FILE" help:"File that holds the password of the Sentinels. Or set ${sentinelPassword}."`
	SentinelTLS          bool   `name:"sentinel-tls" group:"Redis" help:"Speak TLS to the Sentinels."`
	SentinelCA           string `name:"sentinel-ca" group:"Redis" placeholder:"FILE" help:"PEM authorities that a Sentinel is verified by (those of the system)."`
	SentinelCert         string `group:"Redis" placeholder:"FILE" help:"PEM certificate to show to the Sentinels."`
	SentinelKey          string `group:"Redis" placeholder:"FILE" help:"PEM key of --sentinel-cert."`
}

// validate reports every flag that makes no sense, by its name.
func (f *redisFlags) validate() error {
	if f.Redis == "" {
		return f.validateAlone()
	}
	password := redisstore.Secret("")
	seeds := redisstore.Seeds{}
	if redisstore.HasSeeds(f.Redis) {
		var err error
		if seeds, err = redisstore.ParseSeeds(f.Redis); err != nil {
			return fmt.Errorf("--redis: %w", err)
		}
		password = seeds.Password
	} else {
		target, err := redisstore.ParseURL(f.Redis)
		if err != nil {
			return fmt.Errorf("--redis: %w", err)
		}
		password = target.Password
	}
	if password != "" {
		return fmt.Errorf("--redis: holds a password, which everyone can see in the list of processes: use "+
			"--redis-password-file or %s", passwordVariable)
	}
	_, err := f.nat()
	if seeds.Topology != redisstore.Sentinel && f.asksForSentinels() {
		err = errors.Join(err, errors.New("--sentinel-...: these flags are for a sentinel:// URL in --redis"))
	}
	return err
}

func (f *redisFlags) validateAlone() error {
	others := f.RedisUsername + f.RedisPasswordFile + f.RedisCA + f.RedisCert + f.RedisKey + strings.Join(f.RedisNAT, "")
	if others != "" || f.RedisTLS || f.asksForSentinels() {
		return errors.New("--redis: is missing, but other --redis-... or --sentinel-... flags are given")
	}
	return nil
}

func (f *redisFlags) asksForSentinels() bool {
	return f.SentinelTLS ||
		f.SentinelUsername+f.SentinelPasswordFile+f.SentinelCA+f.SentinelCert+f.SentinelKey != ""
}

// access is how to be let in by the data nodes.
func (f *redisFlags) access() (redisstore.Access, error) {
	password := os.Getenv(passwordVariable)
	if password != "" && f.RedisPasswordFile != "" {
		return redisstore.Access{}, errors.New("--redis-password-file and " + passwordVariable + " are both given")
	}
	return redisstore.Access{
		Username: f.RedisUsername, Password: redisstore.Secret(password), PasswordFile: f.RedisPasswordFile,
		TLS: f.RedisTLS, CAFile: f.RedisCA, CertFile: f.RedisCert, KeyFile: f.RedisKey,
	}, nil
}

// sentinelAccess is how to be let in by the Sentinels.
func (f *redisFlags) sentinelAccess() (redisstore.Access, error) {
	password := os.Getenv(sentinelPasswordVariable)
	if password != "" && f.SentinelPasswordFile != "" {
		return redisstore.Access{}, errors.New("--sentinel-password-file and " + sentinelPasswordVariable +
			" are both given")
	}
	return redisstore.Access{
		Username: f.SentinelUsername, Password: redisstore.Secret(password), PasswordFile: f.SentinelPasswordFile,
		TLS: f.SentinelTLS, CAFile: f.SentinelCA, CertFile: f.SentinelCert, KeyFile: f.SentinelKey,
	}, nil
}

// nat maps announced addresses to those that are dialed.
func (f *redisFlags) nat() (map[string]string, error) {
	addresses := map[string]string{}
	for _, pair := range f.RedisNAT {
		from, to, _ := strings.Cut(pair, "=")
		for _, address := range [...]string{from, to} {
			if _, _, err := net.SplitHostPort(address); err != nil {
				return nil, fmt.Errorf("--redis-nat: %q is not announced:port=dialed:port", pair)
			}
		}
		addresses[from] = to
	}
	return addresses, nil
}
