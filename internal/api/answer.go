package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/retrylens/retrylens/internal/export"
)

// Media types of answers.
const (
	typeJSON    = "application/json"
	typeCSV     = "text/csv"
	typeParquet = "application/vnd.apache.parquet"
)

// FormatParams choose the media type of an answer.
type FormatParams struct {
	Format string `query:"format" enum:"json,csv,parquet" doc:"Of the answer; goes before Accept."`
	Accept string `header:"Accept" doc:"application/json (default), text/csv or application/vnd.apache.parquet."`
}

// media is the media type that was asked for: what Accept prefers of those there
// are (RFC 9110, 12.5.1); JSON where it names none of them.
func (p FormatParams) media() string {
	switch p.Format {
	case "json":
		return typeJSON
	case "csv":
		return typeCSV
	case "parquet":
		return typeParquet
	}
	best, weight := typeJSON, 0.0
	for part := range strings.SplitSeq(p.Accept, ",") {
		media, params, err := mime.ParseMediaType(part)
		q := 1.0
		if text, ok := params["q"]; ok && err == nil {
			q, err = strconv.ParseFloat(text, 64)
		}
		if known := media == typeJSON || media == typeCSV || media == typeParquet; err == nil && known && q > weight {
			best, weight = media, q
		}
	}
	return best
}

// ConditionalParams allow for an answer that has not changed.
type ConditionalParams struct {
	IfNoneMatch string `header:"If-None-Match" doc:"ETags of earlier answers; 304 if one is still right."`
}

// answer is what is sent: body, with an ETag, or a stream of unknown length.
type answer struct {
	media   string
	name    string // of the file that a download is saved as; "" = it is shown
	headers map[string]string
	body    []byte
	stream  func(io.Writer) error // instead of body
	match   string                // If-None-Match
}

// jsonAnswer is v as JSON.
func jsonAnswer(v any, match string) (*answer, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return &answer{media: typeJSON, body: append(b, '\n'), match: match}, nil
}

// fileAnswer is a table in one of the formats for other programs.
func fileAnswer(media, name string, t export.Table) *answer {
	write, extension := export.CSV, ".csv"
	if media == typeParquet {
		write, extension = export.Parquet, ".parquet"
	}
	return &answer{media: media, name: name + extension, stream: func(w io.Writer) error { return write(w, t) }}
}

func (a *answer) write(hc huma.Context) error {
	hc.SetHeader("Content-Type", a.contentType())
	hc.SetHeader("Cache-Control", "no-cache, private")
	hc.SetHeader("Vary", "Accept, Authorization")
	if a.name != "" {
		hc.SetHeader("Content-Disposition", `attachment; filename="`+a.name+`"`)
	}
	for k, v := range a.headers {
		hc.SetHeader(k, v)
	}
	if a.stream != nil {
		hc.SetStatus(http.StatusOK)
		return a.stream(hc.BodyWriter())
	}
	tag := etag(a.body)
	hc.SetHeader("ETag", tag)
	if matches(a.match, tag) {
		hc.SetStatus(http.StatusNotModified)
		return nil
	}
	hc.SetStatus(http.StatusOK)
	_, err := hc.BodyWriter().Write(a.body)
	return err
}

func (a *answer) contentType() string {
	if a.media == typeCSV {
		return typeCSV + "; charset=utf-8; header=present"
	}
	return a.media
}

func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:16]) + `"`
}

// matches compares weakly, as If-None-Match does (RFC 9110, 13.1.2).
func matches(header, tag string) bool {
	if strings.TrimSpace(header) == "*" {
		return true
	}
	for part := range strings.SplitSeq(header, ",") {
		if strings.TrimPrefix(strings.TrimSpace(part), "W/") == tag {
			return true
		}
	}
	return false
}
