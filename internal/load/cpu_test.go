package load

import (
	"testing"
	"time"
)

func TestParseStat_ReadsNameAndTime(t *testing.T) {
	const rest = " S 1 42 42 0 -1 4194560 1 2 3 4 1234 66 7 8 20 0 9 0 5000"
	name, used, err := parseStat([]byte("42 (redis (old) 7)" + rest))
	if err != nil {
		t.Fatal(err)
	}
	if want := 13 * time.Second; name != "redis (old) 7" || used != want {
		t.Errorf("parseStat = %q %v, want %q %v", name, used, "redis (old) 7", want)
	}
}

func TestParseStat_RefusesWhatItDoesNotUnderstand(t *testing.T) {
	for name, stat := range map[string]string{
		"nothing":      "",
		"no name":      "42 S 1 42",
		"cut off":      "42 (x) S 1 42 42 0 -1 4194560 1 2 3 4 1234",
		"not a number": "42 (x) S 1 42 42 0 -1 4194560 1 2 3 4 many 66 7 8",
	} {
		if _, _, err := parseStat([]byte(stat)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
