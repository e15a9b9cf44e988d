package export

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"
)

// CSV writes a table with a header line (RFC 4180, lines end in LF). Null is an
// empty cell. Text that a spreadsheet would run as a formula gets an apostrophe
// before it.
func CSV(w io.Writer, t Table) error {
	c := csv.NewWriter(w)
	line := make([]string, len(t.Columns))
	for i, col := range t.Columns {
		line[i] = col.Name
	}
	if err := c.Write(line); err != nil {
		return err
	}
	for row, err := range t.Rows {
		if err != nil {
			return err
		}
		for i, col := range t.Columns {
			line[i] = csvCell(col.Kind, row[i])
		}
		if err := c.Write(line); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

func csvCell(k Kind, c Cell) string {
	switch {
	case k == Text:
		return csvText(c.Text)
	case k == Bool:
		return strconv.FormatBool(c.Bool)
	case !c.Set:
		return ""
	case k == Count:
		return strconv.FormatInt(c.Count, 10)
	case k == Ratio:
		return strconv.FormatFloat(c.Ratio, 'g', -1, 64)
	case k == USD:
		return c.USD.String()
	}
	return c.Time.Format(time.RFC3339Nano)
}

// csvText keeps a spreadsheet from running a cell as a formula
// (OWASP, CSV injection).
func csvText(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return "'" + s
	}
	return s
}
