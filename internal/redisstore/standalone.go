package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// StandaloneConfig names one server and the credentials for it.
//
// The account needs no more than "~rl:* +evalsha +script|load +ping +role +time +get +set", and +select for a
// database other than 0. Without +script|load somebody else must load the script.
type StandaloneConfig struct {
	// URL is redis://[user[:password]@]host[:port][/db], rediss:// for TLS, or unix:///path/to/socket[?db=N].
	URL string
	// Username takes the place of the one in URL.
	Username string
	// Password takes the place of the one in URL.
	Password Secret
	// PasswordFile holds the password, and takes the place of both others. It is read again for every connection, so
	// a rotated password needs no restart.
	PasswordFile string
	// CAFile holds the PEM certificates that a rediss:// server is verified by. Default: those of the system. All
	// three files are read again for every connection.
	CAFile string
	// CertFile and KeyFile are the PEM pair shown to a server that demands a client certificate.
	CertFile, KeyFile string
}

// Validate reports every contradiction.
func (c StandaloneConfig) Validate() error {
	var errs []error
	target, err := ParseURL(c.URL)
	if err != nil {
		errs = append(errs, err)
	} else if target.TLS == nil && c.CAFile+c.CertFile+c.KeyFile != "" {
		errs = append(errs, errors.New("redisstore: certificates are given, so the redis URL must be rediss://"))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		errs = append(errs, errors.New("redisstore: a client certificate needs both its certificate and its key"))
	}
	if c.Password != "" && c.PasswordFile != "" {
		errs = append(errs, errors.New("redisstore: give the password or a password file, not both"))
	}
	return errors.Join(errs...)
}

// Standalone resolves to one server that never moves.
type Standalone struct {
	cfg    StandaloneConfig
	target Target
}

// NewStandalone returns the resolver for cfg. It reads no files yet: they may appear later.
func NewStandalone(cfg StandaloneConfig) (*Standalone, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	target, err := ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	if cfg.Username != "" {
		target.Username = cfg.Username
	}
	if cfg.Password != "" {
		target.Password = cfg.Password
	}
	return &Standalone{cfg: cfg, target: target}, nil
}

// String is the address without credentials.
func (s *Standalone) String() string { return s.target.Address }

// Resolve reads the credentials anew.
func (s *Standalone) Resolve(context.Context) (Target, error) {
	target := s.target
	if s.cfg.PasswordFile != "" {
		password, err := os.ReadFile(s.cfg.PasswordFile)
		if err != nil {
			return Target{}, fmt.Errorf("redisstore: password file: %w", err)
		}
		target.Password = Secret(strings.TrimRight(string(password), "\r\n"))
	}
	if target.TLS == nil {
		return target, nil
	}
	target.TLS = target.TLS.Clone()
	return target, s.readCertificates(target.TLS)
}

func (s *Standalone) readCertificates(cfg *tls.Config) error {
	if s.cfg.CAFile != "" {
		pem, err := os.ReadFile(s.cfg.CAFile)
		if err != nil {
			return fmt.Errorf("redisstore: CA file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("redisstore: CA file: no certificate in %s", s.cfg.CAFile)
		}
	}
	if s.cfg.CertFile == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(s.cfg.CertFile, s.cfg.KeyFile)
	if err != nil {
		return fmt.Errorf("redisstore: client certificate: %w", err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return nil
}

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
		port = "6379"
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
