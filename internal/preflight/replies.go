package preflight

import (
	"fmt"
	"strings"
)

// Replies come from the network: each of these takes whatever it is given and returns what it understands.

// words are the strings of an array.
func words(reply any) []string {
	list, _ := reply.([]any)
	all := make([]string, len(list))
	for i, word := range list {
		all[i] = text(word)
	}
	return all
}

func text(reply any) string {
	if reply == nil {
		return ""
	}
	return fmt.Sprint(reply)
}

// pairs reads name, value, name, value.
func pairs(reply any) map[string]string {
	list := words(reply)
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}

// rows reads an array of pairs.
func rows(reply any) []map[string]string {
	list, _ := reply.([]any)
	all := make([]map[string]string, 0, len(list))
	for _, row := range list {
		all = append(all, pairs(row))
	}
	return all
}

// lines reads INFO: name:value.
func lines(reply any) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text(reply)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}
