package preflight

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// WriteText prints the report for people: what is wrong with its remedy below it, in columns.
func (r Report) WriteText(out io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v, %s\n\n", r.Setup, count(len(r.Servers), "server"))
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	var unknown []string
	for _, result := range r.Results {
		if result.Reason == nobodyAsked {
			unknown = append(unknown, result.Check)
			continue
		}
		status := result.Status.String()
		if result.Status >= Warn {
			status = strings.ToUpper(status)
		}
		reason := result.Reason
		if len(result.Nodes) > 0 {
			reason = r.where(result) + ": " + reason
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", status, result.Check, reason)
		if result.Remedy != "" {
			fmt.Fprintf(table, "\t\t-> %s\n", result.Remedy)
		}
	}
	if len(unknown) > 0 {
		fmt.Fprintf(table, "%v\t%s\t%s: %s\n", Skip, count(len(unknown), "check"), nobodyAsked, strings.Join(unknown, ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\n%d pass, %d warn, %d fail, %d skip, in %.1f s\n",
		r.Count(Pass), r.Count(Warn), r.Count(Fail), r.Count(Skip), r.Seconds)
	_, err := out.Write(b.Bytes())
	return err
}

// where names the servers of a result. Those that something is wrong with are named in full.
func (r Report) where(result Result) string {
	const some = 2
	switch n := len(result.Nodes); {
	case n > 1 && n == len(r.Servers):
		return "all servers"
	case result.Status == Skip && n > some+1:
		return fmt.Sprintf("%s and %d more", strings.Join(result.Nodes[:some], ", "), n-some)
	default:
		return strings.Join(result.Nodes, ", ")
	}
}

// count is "1 server" or "2 servers".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
