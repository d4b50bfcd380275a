// Package compose holds the test that docker-compose.yaml works: it brings the file up with a container engine, sends
// requests through it and takes it down again. There is nothing here to import.
//
// As root the test starts an engine of its own, with its data in a temporary directory, and makes the images that it
// would otherwise pull from programs of this machine: it needs no network and leaves a running engine alone. Otherwise
// it uses the engine that the docker command would.
package compose
