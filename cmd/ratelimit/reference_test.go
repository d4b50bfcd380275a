package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/configuration.md anew")

const (
	reference      = "../../docs/configuration.md"
	referenceBegin = "<!-- written by go test ./cmd/ratelimit -run Reference -update -->\n"
	referenceEnd   = "<!-- end -->\n"
)

// The reference of flags lists those that there are, as their help says it.
func TestReference_ListsEveryFlagOfServe(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), referenceBegin)
	_, after, ended := strings.Cut(rest, referenceEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for the flags", reference)
	}
	want := before + referenceBegin + flagsOfServe(t) + referenceEnd + after
	if *update {
		if err := os.WriteFile(reference, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s is out of date, run go test ./cmd/ratelimit -run Reference -update (-want +have):\n%s", reference, diff)
	}
}

func flagsOfServe(t *testing.T) string {
	t.Helper()
	parser, err := newParser(&cli{}, &streams{out: io.Discard, err: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, command := range parser.Model.Children {
		if command.Name != "serve" {
			continue
		}
		group := ""
		for _, f := range command.Flags {
			if f.Group != nil && f.Group.Title != group {
				group = f.Group.Title
				fmt.Fprintf(&b, "\n## %s\n\n| flag | environment | default | |\n|---|---|---|---|\n", group)
			}
			fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s |\n", f.Name, strings.Join(f.Envs, "`, `"), code(f.Default), f.Help)
		}
	}
	return b.String() + "\n"
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}
