// Package scripts embeds the Lua that decides buckets inside Redis. It is the one place where the pieces are put
// together; it knows nothing of clients or keys.
package scripts

import _ "embed"

// Limit holds the algorithms of pkg/limit as Lua functions; it does nothing by itself.
//
//go:embed limit.lua
var Limit string

//go:embed decide.lua
var decide string

// Decide returns the script that decides all buckets of one request atomically; decide.lua documents its KEYS, ARGV
// and reply.
func Decide() string { return Limit + decide }
