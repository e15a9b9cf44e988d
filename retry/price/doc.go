// Package price turns tokens into money: a [Book] of prices per million tokens gives
// the exact cost of an attempt. Where prices come from is its user's business.
package price
