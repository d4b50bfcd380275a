package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificates are the files of a TLS server. They are read again when one of them has changed, so that a rotation
// needs no restart; while the new files do not fit together the old ones stay in use.
type certificates struct {
	cert, key, clientCA string // clientCA may be empty: callers then need no certificate
	onError             func(error)

	mu     sync.Mutex
	stamps [3]time.Time
	config *tls.Config
}

// newCertificates reads the files once, so that a start with unusable ones fails.
func newCertificates(cert, key, clientCA string, onError func(error)) (*certificates, error) {
	c := &certificates{cert: cert, key: key, clientCA: clientCA, onError: onError}
	var err error
	c.stamps = c.modified()
	if c.config, err = c.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// server is the configuration of the listener; each handshake gets the newest certificates.
func (c *certificates) server() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

func (c *certificates) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	stamps := c.modified()
	if stamps == c.stamps {
		return c.config
	}
	c.stamps = stamps // also if they cannot be used: one complaint a change
	fresh, err := c.read()
	if err != nil {
		c.onError(err)
		return c.config
	}
	c.config = fresh
	return fresh
}

// modified is when each file last changed; the zero time for one that is not there.
func (c *certificates) modified() (stamps [3]time.Time) {
	for i, path := range [...]string{c.cert, c.key, c.clientCA} {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = info.ModTime()
		}
	}
	return stamps
}

func (c *certificates) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("--grpc-cert, --grpc-key: %w", err)
	}
	// Envoy speaks TLS 1.2 to its upstreams unless it is told otherwise.
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair},
	}
	if c.clientCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(c.clientCA)
	if err != nil {
		return nil, fmt.Errorf("--grpc-client-ca: %w", err)
	}
	config.ClientCAs = x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("--grpc-client-ca: holds no certificate in PEM form")
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	return config, nil
}
