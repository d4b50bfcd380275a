package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/honestlimit/ratelimit/internal/load"
)

// loadCmd puts a service under load.
type loadCmd struct {
	Ask []string `arg:"" name:"key=value" help:"The descriptor's entries, in order. {key} in a value is replaced by a drawn key. A + alone begins another descriptor of the same request."`

	Target string `env:"-" default:"127.0.0.1:8081" help:"Address of the service: host:port, or unix:PATH." placeholder:"ADDR"`
	Domain string `env:"-" required:"" help:"Domain to ask about."`
	Hits   uint32 `env:"-" help:"hits_addend of every request; without it a request counts as 1." placeholder:"N"`
	Keys   int    `env:"-" default:"1" help:"How many different keys {key} stands for."`
	Dist   string `env:"-" default:"uniform" enum:"hot,uniform,zipf" help:"How keys are drawn: hot (nine of ten requests ask for key 0), uniform, or zipf (exponent 1.1)."`
	Seed   uint64 `env:"-" help:"Draw the same keys again; the report names the seed." placeholder:"N"`

	Rate        rateFlag      `env:"-" help:"Open loop: as many requests arrive, evenly spaced, as 10000/s says, however slow the answers are. Without it a closed loop: each stream asks again when it has its answer." placeholder:"N/s"`
	Connections int           `env:"-" default:"4" help:"Connections to open."`
	Streams     int           `env:"-" help:"Most requests in flight on each connection (16, in an open loop 64)." placeholder:"N"`
	Backlog     int           `env:"-" help:"Most due requests of an open loop that wait for a stream; more are not offered, and counted (10 s of them)." placeholder:"N"`
	Duration    time.Duration `env:"-" help:"How long to send, after the warm-up (10s, unless --requests is given)." placeholder:"TIME"`
	Requests    int64         `env:"-" help:"How many requests to send, after the warm-up." placeholder:"N"`
	Ramp        time.Duration `env:"-" help:"Time in which the load rises linearly, from the start." placeholder:"TIME"`
	Warmup      time.Duration `env:"-" help:"Time at the start that is not reported." placeholder:"TIME"`
	Timeout     time.Duration `env:"-" help:"gRPC deadline of each request; none by default." placeholder:"TIME"`

	loadFault
	loadTLS

	PID   []int      `env:"-" name:"pid" help:"Report the processor time of these processes for each request." placeholder:"PID"`
	Limit *limitFlag `env:"-" help:"The limit on every key, like 100/s,burst=200: reports what was admitted beyond it." placeholder:"LIMIT"`
	JSON  bool       `env:"-" name:"json" help:"Print the report as JSON; names carry the units."`
}

// Help teaches by example.
func (loadCmd) Help() string {
	return `Sends requests to any service that speaks envoy.service.ratelimit.v3 and reports throughput, latency and the
answers by reason. In an open loop (--rate) latency counts from the moment a request was due, so that a service that
stalls is charged with every request it held up. A fault in the middle of the run shows what it costs, and when
the service is itself again.

How fast is it? As many as 4 connections of 16 requests each get answered, over 1,000 tenants:
  ratelimit load --domain mesh --keys 1000 --pid $(pgrep -x ratelimit) endpoint_id=resumint.tailor tenant=t{key}

How long do answers take at 5,000 a second, and does the limit hold?
  ratelimit load --domain mesh --rate 5000/s --duration 30s --warmup 2s --limit 100/s,burst=200 \
      endpoint_id=resumint.tailor tenant=acme

What if Redis freezes for 100 ms, and what if it is killed and comes back after 2 s?
  ratelimit load --domain mesh --rate 5000/s --freeze $(pgrep -x redis-server) --fault-for 100ms \
      endpoint_id=pdftalk.ingest tenant=t{key} --keys 1000
  ratelimit load --domain mesh --rate 5000/s --fault 'docker kill redis' --fault-end 'docker start redis' \
      --fault-for 2s endpoint_id=pdftalk.ingest tenant=acme`
}

// loadGCPercent spares the load generator a seventh of its processor time, of which what it measures has more use. Its
// live heap is a few megabytes, mostly histograms.
const loadGCPercent = 800

// Run sends the load and prints the report, also of a run that was cut short.
func (c *loadCmd) Run(s *streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cfg, err := c.config()
	if err != nil {
		return &usageError{command: "load", err: err}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(loadGCPercent)
	}
	line := newProgressLine(s.err)
	cfg.OnProgress = line.show
	report, err := load.Run(ctx, cfg)
	line.clear()
	if report.Schema == 0 { // nothing was sent
		return c.explain(err)
	}
	return errors.Join(c.print(s.out, report), c.explain(err))
}

func (c *loadCmd) print(out io.Writer, r load.Report) error {
	if !c.JSON {
		return r.WriteText(out)
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// config translates the flags. What load.Config can check itself is left to it.
func (c *loadCmd) config() (load.Config, error) {
	asked, err := descriptors(c.Ask)
	secured, tlsErr := c.tls()
	fault, faultErr := c.fault()
	cfg := load.Config{
		Target: c.Target, TLS: secured, Connections: c.Connections, Streams: c.Streams,
		Domain: c.Domain, Descriptors: asked, Hits: c.Hits, Keys: c.Keys, Dist: dists[c.Dist], Seed: c.Seed,
		Rate: float64(c.Rate), Backlog: c.Backlog, Ramp: c.Ramp, Warmup: c.Warmup,
		Duration: c.Duration, Requests: c.Requests, Timeout: c.Timeout,
		PIDs: c.PID, Limit: (*load.Limit)(c.Limit), Fault: fault,
	}
	if c.Duration == 0 && c.Requests == 0 {
		cfg.Duration = 10 * time.Second
	}
	return cfg, errors.Join(err, tlsErr, faultErr)
}

var dists = map[string]load.Dist{
	load.Hot.String(): load.Hot, load.Uniform.String(): load.Uniform, load.Zipf.String(): load.Zipf,
}

// descriptors reads key=value arguments.
func descriptors(args []string) ([][]load.Entry, error) {
	var faults []error
	list := [][]load.Entry{nil}
	for _, arg := range args {
		if arg == "+" {
			list = append(list, nil)
			continue
		}
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			faults = append(faults, fmt.Errorf("%q is not of the form KEY=VALUE", arg))
		}
		last := &list[len(list)-1]
		*last = append(*last, load.Entry{Key: key, Value: value})
	}
	return list, errors.Join(faults...)
}

// fieldFlags are the flags of those fields of load.Config that are not named alike.
var fieldFlags = map[string]string{
	"Descriptors": "KEY=VALUE", "PIDs": "--pid", "Fault.At": "--fault-at", "Fault.For": "--fault-for",
}

// explain says the errors of load in terms of flags.
func (c *loadCmd) explain(err error) error {
	if errors.Is(err, load.ErrUnreachable) {
		return fmt.Errorf("--target %s: %w", c.Target, err)
	}
	if faults := flagFaults(err); len(faults) > 0 {
		return &usageError{command: "load", err: errors.Join(faults...)}
	}
	return err
}

// flagFaults finds every *load.FieldError that is joined in err.
func flagFaults(err error) (faults []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			faults = append(faults, flagFaults(e)...)
		}
		return faults
	}
	var field *load.FieldError
	if !errors.As(err, &field) {
		return nil
	}
	flag, ok := fieldFlags[field.Field]
	if !ok {
		flag = "--" + strings.ToLower(field.Field)
	}
	return []error{fmt.Errorf("%s: %s", flag, field.Problem)}
}

// loadTLS are the flags for a target that speaks TLS.
type loadTLS struct {
	TLS           bool   `env:"-" name:"tls" help:"Speak TLS, trusting the system's authorities. Any other --tls flag implies it."`
	TLSCA         string `env:"-" name:"tls-ca" help:"PEM file of the authorities to trust instead." type:"path" placeholder:"FILE"`
	TLSCert       string `env:"-" name:"tls-cert" help:"PEM file of the client certificate." type:"path" placeholder:"FILE"`
	TLSKey        string `env:"-" name:"tls-key" help:"PEM file of its key." type:"path" placeholder:"FILE"`
	TLSServerName string `env:"-" name:"tls-server-name" help:"Name in the service's certificate, if it is not that of --target." placeholder:"NAME"`
}

// tls is nil for plain text.
func (f *loadTLS) tls() (*tls.Config, error) {
	if *f == (loadTLS{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.TLSServerName}
	var faults []error
	if f.TLSCA != "" {
		pem, err := os.ReadFile(f.TLSCA)
		if err != nil {
			faults = append(faults, fmt.Errorf("--tls-ca: %w", err))
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) && err == nil {
			faults = append(faults, errors.New("--tls-ca: holds no certificate in PEM form"))
		}
	}
	if f.TLSCert != "" || f.TLSKey != "" {
		pair, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
		if err != nil {
			faults = append(faults, fmt.Errorf("--tls-cert, --tls-key: %w", err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, errors.Join(faults...)
}

// rateFlag is a number of requests a second, written like 10000/s, 600/min or 100/10s.
type rateFlag float64

// UnmarshalText reads the flag.
func (r *rateFlag) UnmarshalText(text []byte) error {
	_, perSecond, err := parsePace(string(text))
	*r = rateFlag(perSecond)
	return err
}

// limitFlag is a limit, written like 100/s,burst=200. The burst is by default what the rate admits in its time.
type limitFlag load.Limit

// UnmarshalText reads the flag.
func (l *limitFlag) UnmarshalText(text []byte) error {
	pace, burst, given := strings.Cut(string(text), ",burst=")
	count, perSecond, err := parsePace(pace)
	if err != nil {
		return err
	}
	if given {
		if count, err = strconv.ParseFloat(burst, 64); err != nil || !(count >= 0 && count <= math.MaxInt64) {
			return fmt.Errorf("the burst is %q, want a number of hits", burst)
		}
	}
	*l = limitFlag{PerSecond: perSecond, Burst: count}
	return nil
}

// parsePace reads count/time; the time is a duration, or a unit for one of it.
func parsePace(s string) (count, perSecond float64, err error) {
	problem := fmt.Errorf("%q is no rate, want one like 10000/s, 600/min or 100/10s", s)
	number, per, found := strings.Cut(s, "/")
	count, err = strconv.ParseFloat(number, 64)
	if err != nil || !found || !(count > 0 && count <= math.MaxInt64) || per == "" {
		return 0, 0, problem
	}
	if per == "min" {
		per = "m"
	}
	if per[0] < '0' || per[0] > '9' {
		per = "1" + per
	}
	period, err := time.ParseDuration(per)
	if err != nil || period <= 0 {
		return 0, 0, problem
	}
	return count, count / period.Seconds(), nil
}
