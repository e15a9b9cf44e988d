// Package fingerprint tells request bodies apart without keeping them: the field
// fingerprint of the attempt record (docs/record.md).
package fingerprint
