// Package envoy renders the Envoy configuration of this repository for the place where Envoy runs. It knows only
// which addresses and files the configuration names; envoy.yaml, beside this file, explains the rest of it.
//
// envoy.yaml is complete as it stands: it names the hosts of docker-compose.yaml. There is no second copy and no
// template language, a rendering only swaps the few texts that Config lists. All functions are pure.
package envoy

import (
	_ "embed"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed envoy.yaml
var asWritten string

// Config says where things are. Addresses are host:port, a host may be a name or an IP address. A zero field keeps
// what envoy.yaml says, which is right inside docker-compose.yaml.
type Config struct {
	// Listen is where clients call (0.0.0.0:10000), Admin where Envoy tells about itself (127.0.0.1:9901).
	Listen, Admin string
	// RateLimit is the service's gRPC address (ratelimit:8081).
	RateLimit string
	// PDFTalk (pdftalk:8080) and Resumint (resumint:8080) are the protected services.
	PDFTalk, Resumint string
	// KeySet is the file that tokens are verified with (/etc/envoy/keys/jwks.json).
	KeySet string
}

// Validate reports every field that cannot be used.
func (c Config) Validate() error {
	var errs []error
	for _, s := range c.swaps() {
		if s.address == "" {
			continue
		}
		if _, err := socketAddress(s.address); err != nil {
			errs = append(errs, fmt.Errorf("envoy: %s: %w", s.field, err))
		}
	}
	if c.KeySet != "" && !filepath.IsAbs(c.KeySet) {
		errs = append(errs, fmt.Errorf("envoy: KeySet: %q is not an absolute path", c.KeySet))
	}
	return errors.Join(errs...)
}

// swap exchanges the one socket address written in envoy.yaml as {address: host, port_value: port}.
type swap struct {
	field   string
	written string
	address string
}

func (c Config) swaps() []swap {
	return []swap{
		{"Listen", "{address: 0.0.0.0, port_value: 10000}", c.Listen},
		{"Admin", "{address: 127.0.0.1, port_value: 9901}", c.Admin},
		{"RateLimit", "{address: ratelimit, port_value: 8081}", c.RateLimit},
		{"PDFTalk", "{address: pdftalk, port_value: 8080}", c.PDFTalk},
		{"Resumint", "{address: resumint, port_value: 8080}", c.Resumint},
	}
}

// writtenKeySet is the path of the key set in envoy.yaml.
const writtenKeySet = "/etc/envoy/keys/jwks.json"

// Render returns the configuration with c's addresses and files in it.
func Render(c Config) (string, error) {
	if err := c.Validate(); err != nil {
		return "", err
	}
	text := asWritten
	for _, s := range c.swaps() {
		if s.address == "" {
			continue
		}
		to, err := socketAddress(s.address)
		if err != nil {
			return "", fmt.Errorf("envoy: %s: %w", s.field, err)
		}
		if text, err = replaceOnce(text, s.written, to); err != nil {
			return "", err
		}
	}
	if c.KeySet == "" {
		return text, nil
	}
	return replaceOnce(text, "filename: "+writtenKeySet, "filename: "+strconv.Quote(c.KeySet))
}

func socketAddress(hostPort string) (string, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return "", err
	}
	if host == "" {
		return "", fmt.Errorf("address %s names no host", hostPort)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 {
		return "", fmt.Errorf("address %s: port %q is not a number from 1 to 65535", hostPort, port)
	}
	return fmt.Sprintf("{address: %q, port_value: %d}", host, number), nil
}

// replaceOnce keeps envoy.yaml and this file in step: a text that was reworded or repeated there is an error here.
func replaceOnce(text, from, to string) (string, error) {
	if n := strings.Count(text, from); n != 1 {
		return "", fmt.Errorf("envoy: envoy.yaml says %q %d times, want once", from, n)
	}
	return strings.Replace(text, from, to, 1), nil
}
