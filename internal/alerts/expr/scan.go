package expr

import "strings"

type tokenKind uint8

const (
	end tokenKind = iota
	word
	number
	symbol
	wrong
)

type token struct {
	kind tokenKind
	text string
	at   int // offset in bytes
}

func (t token) quoted() string {
	if t.kind == end {
		return "the end"
	}
	return `"` + t.text + `"`
}

func letter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// scan returns the token at or behind at, and the offset behind it.
func scan(text string, at int) (token, int) {
	for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
		at++
	}
	if at == len(text) {
		return token{end, "", at}, at
	}
	from, c := at, text[at]
	switch {
	case letter(c):
		for at < len(text) && (letter(text[at]) || digit(text[at])) {
			at++
		}
		return token{word, text[from:at], from}, at
	case digit(c):
		for at < len(text) && (digit(text[at]) || text[at] == '.') {
			at++
		}
		return token{number, text[from:at], from}, at
	case at+1 < len(text) && text[at+1] == '=' && strings.IndexByte("<>=!", c) >= 0:
		return token{symbol, text[at : at+2], from}, at + 2
	case strings.IndexByte("()[]{}<>+-*/", c) >= 0:
		return token{symbol, text[at : at+1], from}, at + 1
	}
	return token{wrong, firstRune(text[at:]), from}, at + 1
}

func firstRune(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}
