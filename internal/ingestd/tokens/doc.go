// Package tokens knows who may send records for which tenants: a file of
// SHA-256 hashes of bearer tokens, read again when it changes.
package tokens
