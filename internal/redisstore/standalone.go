package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Standalone resolves to one server that never moves.
type Standalone struct {
	access Access
	target Target
}

// NewStandalone returns the resolver for the server at raw: redis://[user[:password]@]host[:port][/db], rediss:// for
// TLS, or unix:///path/to/socket[?db=N]. What access says takes the place of what raw says. No files are read yet: they
// may appear later.
//
// The account needs no more than "~rl:* +evalsha +script|load +ping +role +time +get +set", and +select for a database
// other than 0. Without +script|load somebody else must load the script.
func NewStandalone(raw string, access Access) (*Standalone, error) {
	target, err := ParseURL(raw)
	// A URL that is none need not also be one without TLS.
	access.TLS = access.TLS || err != nil || target.TLS != nil
	if err := errors.Join(err, access.Validate()); err != nil {
		return nil, err
	}
	if access.TLS && target.TLS == nil {
		if target.TLS, err = tlsFor(target.Address); err != nil {
			return nil, err
		}
	}
	access.Username = cmp.Or(access.Username, target.Username)
	if access.Password == "" && access.PasswordFile == "" {
		access.Password = target.Password
	}
	return &Standalone{access: access, target: target}, nil
}

// String is the address without credentials.
func (s *Standalone) String() string { return s.target.Address }

// Resolve reads the credentials anew.
func (s *Standalone) Resolve(context.Context) (Target, error) { return s.access.admit(s.target) }

// ParseURL reads the forms that StandaloneConfig.URL documents. Its errors never show the URL, which may hold a
// password.
func ParseURL(raw string) (Target, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own error quotes what it did not understand.
		return Target{}, urlError("cannot be parsed; characters like / # @ % in a password must be percent-encoded")
	}
	if u.Fragment != "" {
		return Target{}, urlError("has a #; in a password write it as %23")
	}
	target := Target{Username: u.User.Username()}
	if password, ok := u.User.Password(); ok {
		target.Password = Secret(password)
	}
	switch u.Scheme {
	case "redis", "rediss":
		err = target.parseHost(u)
	case "unix":
		err = target.parseSocket(u)
	default:
		err = urlError("must start with redis://, rediss:// or unix://")
	}
	if err != nil {
		return Target{}, err
	}
	return target, nil
}

func (t *Target) parseHost(u *url.URL) (err error) {
	if u.Hostname() == "" {
		return urlError("names no host")
	}
	if u.RawQuery != "" {
		return urlError("has parameters after a ?, of which there are none; the database is /N")
	}
	port := u.Port()
	if port == "" {
		port = redisPort
	}
	t.Network, t.Address = "tcp", net.JoinHostPort(u.Hostname(), port)
	if u.Scheme == "rediss" {
		t.TLS = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	}
	t.DB, err = parseDB(strings.TrimPrefix(u.Path, "/"))
	return err
}

func (t *Target) parseSocket(u *url.URL) (err error) {
	if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
		return urlError("must name the socket by its absolute path: unix:///path/to/socket")
	}
	query := u.Query()
	for name := range query {
		if name != "db" {
			return urlError("has a parameter other than db after its ?")
		}
	}
	t.Network, t.Address = "unix", u.Path
	t.DB, err = parseDB(query.Get("db"))
	return err
}

func parseDB(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	db, err := strconv.Atoi(text)
	if err != nil || db < 0 {
		return 0, urlError("has a database that is no number from 0 up")
	}
	return db, nil
}

func urlError(what string) error { return errors.New("redisstore: the redis URL " + what) }
