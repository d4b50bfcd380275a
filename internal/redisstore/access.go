package redisstore

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// Access is what it takes to be let in by a server: credentials and TLS. The zero value is plain text and no account.
type Access struct {
	// Username is the ACL user; empty for the default user.
	Username string
	// Password is empty if the server asks for none.
	Password Secret
	// PasswordFile holds the password. It is read again for every connection, so a rotated password needs no restart.
	PasswordFile string
	// TLS is set to speak it. The certificate's name must be the host that is dialed.
	TLS bool
	// CAFile holds the PEM certificates that the server is verified by. Default: those of the system. All three files
	// are read again for every connection.
	CAFile string
	// CertFile and KeyFile are the PEM pair shown to a server that demands a client certificate.
	CertFile, KeyFile string
}

// Validate reports every contradiction. It reads no files: they may appear later.
func (a Access) Validate() error {
	var errs []error
	if !a.TLS && cmp.Or(a.CAFile, a.CertFile, a.KeyFile) != "" {
		errs = append(errs, errors.New("redisstore: certificates are given, but TLS is not asked for (rediss:// or TLS)"))
	}
	if (a.CertFile == "") != (a.KeyFile == "") {
		errs = append(errs, errors.New("redisstore: a client certificate needs both its certificate and its key"))
	}
	if a.Password != "" && a.PasswordFile != "" {
		errs = append(errs, errors.New("redisstore: give the password or a password file, not both"))
	}
	return errors.Join(errs...)
}

// Target is the server at host:port with the credentials as they are now.
func (a Access) Target(address string) (Target, error) {
	t := Target{Network: "tcp", Address: address}
	if a.TLS {
		var err error
		if t.TLS, err = tlsFor(address); err != nil {
			return Target{}, err
		}
	}
	return a.admit(t)
}

// tlsFor verifies the server by the host of its address.
func tlsFor(address string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("redisstore: address: %w", err)
	}
	return &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}, nil
}

// admit fills in the credentials of t, whose TLS is nil for plain text.
func (a Access) admit(t Target) (Target, error) {
	t.Username, t.Password = a.Username, a.Password
	if a.PasswordFile != "" {
		password, err := os.ReadFile(a.PasswordFile)
		if err != nil {
			return Target{}, fmt.Errorf("redisstore: password file: %w", err)
		}
		t.Password = Secret(strings.TrimRight(string(password), "\r\n"))
	}
	if t.TLS == nil {
		return t, nil
	}
	t.TLS = t.TLS.Clone()
	return t, a.readCertificates(t.TLS)
}

func (a Access) readCertificates(cfg *tls.Config) error {
	if a.CAFile != "" {
		pem, err := os.ReadFile(a.CAFile)
		if err != nil {
			return fmt.Errorf("redisstore: CA file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("redisstore: CA file: no certificate in %s", a.CAFile)
		}
	}
	if a.CertFile == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(a.CertFile, a.KeyFile)
	if err != nil {
		return fmt.Errorf("redisstore: client certificate: %w", err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return nil
}
