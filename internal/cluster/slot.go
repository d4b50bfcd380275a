package cluster

import (
	"strings"

	"github.com/honestlimit/ratelimit/pkg/limit"
)

// Slots is how many slots the keys of a Cluster are spread over.
const Slots = 16384

// crcs are the CRC-16/XMODEM remainders of single bytes (polynomial 0x1021).
var crcs = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()

// Slot is where a Cluster keeps key: CRC-16 of its hash tag, or of all of it if it has none, modulo Slots. Source: the
// Redis Cluster specification, "Key distribution model" and "Hash tags".
func Slot(key string) uint16 {
	tagged := hashTag(key)
	crc := uint16(0)
	for i := range len(tagged) {
		crc = crc<<8 ^ crcs[byte(crc>>8)^tagged[i]]
	}
	return crc % Slots
}

// hashTag is what lies between the first { and the first } after it, the whole key if there is no such thing or nothing
// in it.
func hashTag(key string) string {
	_, rest, found := strings.Cut(key, "{")
	if !found {
		return key
	}
	tag, _, found := strings.Cut(rest, "}")
	if !found || tag == "" {
		return key
	}
	return tag
}

// commonSlot is the slot of all charges; false if they have several.
func commonSlot(charges []limit.Charge) (slot uint16, common bool) {
	slot = Slot(charges[0].Key)
	for i := range charges[1:] {
		if Slot(charges[i+1].Key) != slot {
			return 0, false
		}
	}
	return slot, true
}
