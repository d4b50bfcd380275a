package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

type explainCmd struct {
	Policies string   `required:"" placeholder:"PATH" help:"Policy file, or directory of *.yaml and *.yml files."`
	Domain   string   `required:"" placeholder:"NAME" help:"Domain that Envoy's filter asks for."`
	Entries  []string `arg:"" name:"KEY=VALUE" help:"The descriptor's entries, in the order of Envoy's actions."`
}

// Help implements kong.HelpProvider.
func (explainCmd) Help() string {
	return `Shows which policy governs a descriptor, which bucket it charges, and why the other policies do not govern it;
the nearest misses come first. Exit code 1 if none governs it: such requests pass, and are counted as unmatched.

  ratelimit explain --policies policies/ --domain mesh endpoint_id=resumint.tailor tenant=acme
  ratelimit explain --policies policies/ --domain mesh path=/api/v1/users 'note=a value may hold = and spaces'

The bucket's key holds a hash, so it can be looked up in Redis and in the log without anyone learning who it is.`
}

var errUnmatched = errors.New("no policy governs this descriptor: its requests pass, and are counted as unmatched")

// Run explains the descriptor.
func (c *explainCmd) Run(s *streams) error {
	descriptor, err := c.descriptor()
	if err != nil {
		return &usageError{command: "explain", err: err}
	}
	set, err := policy.Load(c.Policies)
	if err != nil {
		return err
	}
	domain := set.Domain(c.Domain)
	if domain == nil {
		return fmt.Errorf("--domain: %q is not configured, but %s: all its requests pass",
			c.Domain, strings.Join(set.Domains(), ", "))
	}
	e := domain.Explain(descriptor)
	if err := writeExplanation(s.out, domain, e, descriptor); err != nil {
		return err
	}
	if e.Policy == nil {
		return errUnmatched
	}
	return nil
}

func (c *explainCmd) descriptor() ([]policy.Entry, error) {
	var descriptor []policy.Entry
	var errs []error
	for _, text := range c.Entries {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			errs = append(errs, fmt.Errorf("%q must be of the form KEY=VALUE", text))
		}
		descriptor = append(descriptor, policy.Entry{Key: key, Value: value})
	}
	return descriptor, errors.Join(errs...)
}

func writeExplanation(out io.Writer, d *policy.Domain, e policy.Explanation, descriptor []policy.Entry) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if p := e.Policy; p != nil {
		fmt.Fprintf(table, "governed by\t%s (%s:%d)\n", p.Endpoint.ID, p.File, p.Line)
		fmt.Fprintf(table, "descriptor\t%v\n", p.Pattern)
		fmt.Fprintf(table, "limit\t%s\n", describeLimit(p.Limit))
		fmt.Fprintf(table, "bucket\t%s\n", p.BucketKey(descriptor))
		if keys := d.ShardBy(); len(keys) > 0 {
			fmt.Fprintf(table, "slot\t%s\n", describeSlot(p, keys))
		}
		fmt.Fprintf(table, "cost\t%s tokens a request\n", describeCost(p))
		fmt.Fprintf(table, "store away\t%s\n", describeFailMode(p.Endpoint))
	}
	for i, m := range e.Misses {
		title := ""
		if i == 0 {
			title = "not by"
		}
		fmt.Fprintf(table, "%s\t%s (%s:%d): %v\n", title, m.Policy.Endpoint.ID, m.Policy.File, m.Policy.Line, m)
	}
	if e.Omitted > 0 {
		fmt.Fprintf(table, "\tand %d more that are further away\n", e.Omitted)
	}
	return table.Flush()
}

// describeSlot says with which buckets one of p shares a slot of a Redis Cluster.
func describeSlot(p *policy.Policy, shardBy []string) string {
	if why := p.Apart(); why != "" {
		return "of its own: " + why
	}
	return "shared with all buckets that agree in " + strings.Join(shardBy, ", ")
}
