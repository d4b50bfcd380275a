// Package scripts embeds the Lua that decides buckets inside Redis. It is the one place where the pieces are put
// together and where their arguments and replies are encoded; it knows nothing of clients.
package scripts

import _ "embed"

// Limit holds the algorithms of pkg/limit as Lua functions; it does nothing by itself.
//
//go:embed limit.lua
var Limit string

//go:embed decide.lua
var decide string

// Decide returns the script that decides requests, each of them atomically. AppendRequest writes its argument and
// ReadResults reads its reply.
func Decide() string { return Limit + decide }
