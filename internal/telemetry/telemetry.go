// Package telemetry shows what the service does: as Prometheus metrics and as log lines.
//
// Its types decorate the parts of the service or are hooked into them; none changes what a part does. They register
// what they measure with the Registerer they are given, under the names of Catalogue, and are safe for concurrent
// use. Labels are closed enums or names from configuration, never anything a request brought; a log line knows an
// identity only as the hash in its bucket's key.
package telemetry
