// Package redisconf holds the configuration of Redis that ratelimit recommends, as templates that people render with
// render.sh and programs with Render. It says why each value is what it is, in comments of the templates; it starts
// nothing.
//
// It has no state, and is safe for concurrent use.
package redisconf

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The templates. Each one names in its head what it is filled in with.
const (
	// Redis is a data node of a Sentinel set-up, or a server of its own.
	Redis = "redis.conf"
	// Cluster is a node of a Cluster; it includes Redis from the same directory.
	Cluster = "cluster.conf"
	// Sentinel is a Sentinel.
	Sentinel = "sentinel.conf"
	// Users are the accounts of data nodes, ClusterUsers those of a Cluster's nodes, SentinelUsers those of Sentinels.
	Users         = "users.acl"
	ClusterUsers  = "cluster-users.acl"
	SentinelUsers = "sentinel-users.acl"
)

//go:embed *.conf *.acl
var templates embed.FS

var (
	placeholder = regexp.MustCompile(`\$\{[A-Z_]+\}`)
	word        = regexp.MustCompile(`^[!$-&(-\[\]-~]+$`)
)

// Render is the template with every ${NAME} outside of comments replaced by values[NAME]. Comments stay, except in
// ACL files, where Redis takes none. A value that is missing, empty or not a single word of printable ASCII without
// quotes, # and \ is an error, which names it and never shows it. The result may hold passwords.
func Render(template string, values map[string]string) (string, error) {
	raw, err := templates.ReadFile(template)
	if err != nil {
		return "", fmt.Errorf("redisconf: %w", err)
	}
	lines := strings.Split(string(raw), "\n")
	if strings.HasSuffix(template, ".acl") {
		lines = rules(lines)
	}
	var faults []error
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		lines[i] = placeholder.ReplaceAllStringFunc(line, func(p string) string {
			name := strings.Trim(p, "${}")
			if !word.MatchString(values[name]) {
				faults = append(faults, fmt.Errorf("redisconf: %s: %s must be one word without quotes, # and \\", template, name))
			}
			return values[name]
		})
	}
	return strings.Join(lines, "\n"), errors.Join(faults...)
}

// rules drops comments and empty lines, and joins those that begin with white space to the line before.
func rules(lines []string) []string {
	var all []string
	for _, line := range lines {
		text := strings.TrimSpace(line)
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if line[0] == text[0] || len(all) == 0 {
			all = append(all, text)
			continue
		}
		all[len(all)-1] += " " + text
	}
	return slices.Concat(all, []string{""})
}
