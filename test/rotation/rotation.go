// Package rotation holds the test that docs/rotation.md works: it runs the commands of that page, word by word, against
// a master with replicas under Sentinels while a real service decides under load. There is nothing here to import.
package rotation
