package usage

// members reads members of an object as long as they lie in p whole and are plain: names
// and strings without escapes, numbers and literals. It returns where that ends; what
// stands there is read step by step. It does what the steps do, without their detours.
func (d *document) members(p []byte, i int) int {
	for d.state == sKey && i < len(p) && p[i] == '"' {
		name := i + 1
		end := name + stringEnd(p[name:])
		if end+2 >= len(p) || p[end] != '"' || p[end+1] != ':' {
			return i
		}
		d.act = aNone
		if end-name <= maxToken {
			d.act = d.member(&d.stack[d.depth-1], p[name:end])
		}
		d.state, d.escaped = sValue, false
		if i = d.plainValue(p, end+2); d.state != sAfter || i == len(p) || p[i] != ',' {
			return i
		}
		d.next()
		i++
	}
	return i
}

// plainValue reads the value at i if it is plain; otherwise nothing happens.
func (d *document) plainValue(p []byte, i int) int {
	switch c := p[i]; {
	case c == '"' && d.act != aBytes:
		from := i + 1
		n := stringEnd(p[from:])
		if from+n >= len(p) || p[from+n] != '"' {
			return i
		}
		d.begin(sString, false)
		d.start, d.long = from, int64(n)
		d.stringEnds(p[from:from+min(n, maxToken)], from+n)
		return from + n + 1
	case c >= '0' && c <= '9' || c == '-' || c == 't' || c == 'f' || c == 'n':
		n := bareEnd(p[i:])
		if i+n == len(p) {
			return i
		}
		d.to.leaf(d, i, i+n, true)
		d.to.bare(d, p[i:i+min(n, maxToken)])
		d.closed()
		return i + n
	}
	return i
}

// bareEnd is where a number or literal ends, len(p) if it does not.
func bareEnd(p []byte) int {
	for i, c := range p {
		if c == ',' || c == '}' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			return i
		}
	}
	return len(p)
}
