package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFileSize bounds a policy file, in bytes; 20,000 policies fit. A Kubernetes ConfigMap holds 1 MiB.
const maxFileSize = 8 << 20

// file is what one policy file says.
type file struct {
	documents []document
	// blind are the faults because of which it is not known what else the file says, nor of which domain.
	blind Faults
}

// readFile reads the documents of a file. Nothing in content can make it fail other than by faults.
func readFile(name string, content []byte) file {
	if f, ok := unreadable(name, content); ok {
		return file{blind: Faults{f}}
	}
	var f file
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.blind = append(f.blind, syntaxFault(name, content, err))
			return f
		}
		f.add(name, n.Content[0])
	}
	if len(f.documents) == 0 && len(f.blind) == 0 {
		f.blind = Faults{{File: name, Text: "the file is empty, want a domain and its policies"}}
	}
	return f
}

// add reads one document; an empty one, as a trailing "---" makes it, says nothing.
func (f *file) add(name string, root *yaml.Node) {
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return
	}
	d := readDocument(name, root)
	if d.domain == "" {
		f.blind = append(f.blind, d.faults...)
		return
	}
	f.documents = append(f.documents, d)
}

// unreadable reports content that is no text of a sensible size.
func unreadable(name string, content []byte) (Fault, bool) {
	if len(content) > maxFileSize {
		text := fmt.Sprintf("the file is larger than %d MiB: split it, a domain may be spread over files", maxFileSize>>20)
		return Fault{File: name, Text: text}, true
	}
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if text := refusal(r, size); text != "" {
			line, column := position(content, i)
			return Fault{File: name, Line: line, Column: column, Text: text}, true
		}
		i += size
	}
	return Fault{}, false
}

// refusal tells why a character cannot be part of a file, "" if it can. The second rule is YAML's own.
func refusal(r rune, size int) string {
	switch {
	case r == utf8.RuneError && size == 1:
		return "this byte is not UTF-8, which a policy file must be"
	case r < ' ' && r != '\t' && r != '\n' && r != '\r', r >= 0x7f && r < 0xa0 && r != 0x85, r >= 0xfffe && r <= 0xffff:
		return fmt.Sprintf("the control character %U is not allowed", r)
	default:
		return ""
	}
}

// position returns line and column of a byte, counted from 1, columns in characters.
func position(content []byte, at int) (line, column int) {
	line = 1 + bytes.Count(content[:at], []byte("\n"))
	begin := 1 + bytes.LastIndexByte(content[:at], '\n')
	return line, 1 + utf8.RuneCount(content[begin:at])
}

var syntaxForm = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntaxFault puts what the YAML parser complains about where it is.
func syntaxFault(name string, content []byte, err error) Fault {
	parts := syntaxForm.FindStringSubmatch(err.Error())
	if parts == nil {
		return Fault{File: name, Text: "not YAML: " + err.Error()}
	}
	told, _ := strconv.Atoi(parts[1])
	line, text := syntaxLine(content, parts[2], told)
	lines := bytes.Split(content, []byte("\n"))
	line = min(max(line, 1), len(lines))
	at := lines[line-1]
	indent := at[:len(at)-len(bytes.TrimLeft(at, " \t"))]
	if tab := bytes.IndexByte(indent, '\t'); tab >= 0 {
		return Fault{File: name, Line: line, Column: tab + 1, Text: "a tab indents this line, want spaces"}
	}
	return Fault{File: name, Line: line, Column: len(indent) + 1, Text: "not YAML: " + text}
}

// syntaxLine improves on the line that the YAML parser told. In some complaints it tells where the enclosing
// collection begins, in some it counts from 0, in some it tells nothing.
func syntaxLine(content []byte, text string, told int) (line int, better string) {
	switch {
	case text == "did not find expected key" || text == "did not find expected '-' indicator":
		const hint = ": this line is not indented like those before it, or is not of their kind"
		return firstBroken(content, text), text + hint
	case strings.HasPrefix(text, "did not find expected"):
		return told + 1, text
	case strings.HasPrefix(text, "unknown anchor '"):
		anchor := strings.Split(text, "'")[1]
		line, _ = position(content, max(0, bytes.Index(content, []byte("*"+anchor))))
		return line, text
	default:
		return told, text
	}
}

// firstBroken returns the first line whose presence makes the parser complain so. A block that ends too early is no
// error, so the complaint begins with the line that causes it and does not go away.
func firstBroken(content []byte, complaint string) int {
	lines := bytes.SplitAfter(content, []byte("\n"))
	return 1 + sort.Search(len(lines)-1, func(i int) bool {
		return strings.HasSuffix(syntaxError(bytes.Join(lines[:i+1], nil)), complaint)
	})
}

func syntaxError(content []byte) string {
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var n yaml.Node
		if err := decoder.Decode(&n); err != nil {
			return err.Error()
		}
	}
}
