package preflight

import "fmt"

// need is what a command is to the service's account.
type need uint8

const (
	// needed: decisions, or finding the master, depend on it.
	needed need = 1 + iota
	// useful: the service can do without it.
	useful
	// excess: the service never sends it.
	excess
)

func (n need) String() string {
	switch n {
	case needed:
		return "needed"
	case useful:
		return "useful"
	case excess:
		return "excess"
	default:
		return fmt.Sprintf("need(%d)", uint8(n))
	}
}

// grant is what the ACL says to a command.
type grant struct {
	command string
	need    need
	// refused is set if it is not allowed. doubt says why that could not be found out.
	refused bool
	doubt   string
}
