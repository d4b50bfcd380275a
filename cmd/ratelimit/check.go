package main

import (
	"fmt"
	"io"
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
	return table.Flush()
}
