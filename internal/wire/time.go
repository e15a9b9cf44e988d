package wire

import "time"

// parseTime reads RFC 3339 strictly, which package time does not: two-digit
// hours, a dot before the fraction, an offset below 24:00, upper-case T and Z.
// Digits of the fraction beyond the nanosecond are dropped. A leap second is
// refused: no Unix time stands for it.
func parseTime(b []byte) (time.Time, bool) {
	const layout = "2006-01-02T15:04:05"
	if len(b) <= len(layout) || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return time.Time{}, false
	}
	century, year := pair(b[0:]), pair(b[2:])
	month, day := pair(b[5:]), pair(b[8:])
	hour, minute, second := pair(b[11:]), pair(b[14:]), pair(b[17:])
	if max(century, year) > 99 || month-1 > 11 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	nanos, zone, ok := fraction(b[len(layout):])
	offset, zoneOK := zoneOffset(zone)
	if !ok || !zoneOK {
		return time.Time{}, false
	}
	t := time.Date(int(century*100+year), time.Month(month), int(day), int(hour), int(minute), int(second), nanos, time.UTC)
	if uint(t.Day()) != day { // there is no such day
		return time.Time{}, false
	}
	return t.Add(-offset), true
}

// pair reads two digits; what is no digit gives more than 99.
func pair(b []byte) uint {
	tens, ones := uint(b[0]-'0'), uint(b[1]-'0')
	if tens > 9 || ones > 9 {
		return 1000
	}
	return tens*10 + ones
}

// fraction reads ".123", if there is one, as nanoseconds and returns the rest.
func fraction(b []byte) (nanos int, rest []byte, ok bool) {
	if b[0] != '.' {
		return 0, b, true
	}
	i := 1
	for unit := 100_000_000; i < len(b) && b[i]-'0' <= 9; i++ {
		nanos += int(b[i]-'0') * unit
		unit /= 10
	}
	return nanos, b[i:], i > 1
}

// zoneOffset reads "Z" or "+02:00".
func zoneOffset(b []byte) (time.Duration, bool) {
	if string(b) == "Z" {
		return 0, true
	}
	if len(b) != len("+02:00") || b[0] != '+' && b[0] != '-' || b[3] != ':' {
		return 0, false
	}
	hours, minutes := pair(b[1:]), pair(b[4:])
	offset := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if b[0] == '-' {
		offset = -offset
	}
	return offset, hours <= 23 && minutes <= 59
}
