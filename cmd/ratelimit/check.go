package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/honestlimit/ratelimit/pkg/policy"
)

type checkCmd struct {
	Files []string `arg:"" name:"FILE" help:"Policy file, or directory of *.yaml and *.yml files."`
}

// Help implements kong.HelpProvider.
func (checkCmd) Help() string {
	return `Reads the files as serve would, and shows what they would enforce: exit code 0. If anything is wrong it prints
every mistake at once, each as FILE:LINE:COLUMN: what is wrong, what would be right; exit code 1. Files that belong
together are given together, or as their directory: a domain may be spread over several.

  ratelimit check policies/
  ratelimit check policies/*.yaml && git commit`
}

// Run checks the files.
func (c *checkCmd) Run(s *streams) error {
	set, err := policy.Load(c.Files...)
	if err != nil {
		return err
	}
	return writePolicies(s.out, set)
}

// writePolicies writes a table of what set enforces.
func writePolicies(out io.Writer, set *policy.Set) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DOMAIN\tENDPOINT\tDESCRIPTOR\tLIMIT\tSTORE AWAY\tCOST\tVERSION\tWHERE")
	for _, name := range set.Domains() {
		for _, p := range set.Domain(name).Policies() {
			fmt.Fprintf(table, "%s\t%s\t%v\t%s\t%s\t%s\t%d\t%s:%d\n", name, p.Endpoint.ID, p.Pattern,
				describeLimit(p.Limit), describeFailMode(p.Endpoint), describeCost(p), p.Version, p.File, p.Line)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, name := range set.Domains() {
		writeSlots(out, set.Domain(name))
	}
	return nil
}

// writeSlots writes what shard_by of a domain is for, and which policies it does not reach.
func writeSlots(out io.Writer, d *policy.Domain) {
	keys := d.ShardBy()
	if len(keys) == 0 {
		return
	}
	fmt.Fprintf(out, "\n%s is sharded by %s: in a Redis Cluster, buckets that agree in it share a slot.\n",
		d.Name(), strings.Join(keys, ", "))
	for _, p := range d.Policies() {
		if why := p.Apart(); why != "" {
			fmt.Fprintf(out, "note: %s:%d: %s stays in slots of its own: %s\n", p.File, p.Line, p.Endpoint.ID, why)
		}
	}
}
