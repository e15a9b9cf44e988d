package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/retrylens/retrylens/internal/format"
)

//go:embed templates
var templateFiles embed.FS

// staticFiles hold the style sheet, and in static/dist what npm run build makes of ts; a
// file that is always there keeps the folder.
//
//go:embed all:static
var staticFiles embed.FS

// pageTemplates are the pages by name, each with the layout and the parts.
var pageTemplates = parseTemplates()

func parseTemplates() map[string]*template.Template {
	funcs := template.FuncMap{
		"safe": format.Safe, "asset": asset,
		"add": func(a, b int) int { return a + b },
	}
	base := template.Must(template.New("layout").Funcs(funcs).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	pages := map[string]*template.Template{}
	files, _ := fs.Glob(templateFiles, "templates/pages/*.html")
	for _, f := range files {
		t := template.Must(template.Must(base.Clone()).ParseFS(templateFiles, f))
		pages[strings.TrimSuffix(path.Base(f), ".html")] = t
	}
	return pages
}

func render(w io.Writer, name string, v *view) error {
	return pageTemplates[name].ExecuteTemplate(w, "layout", v)
}

// digests are of every static file; an address carries its file's, so that it can be kept for ever.
var digests = digestFiles()

func digestFiles() map[string]string {
	out := map[string]string{}
	_ = fs.WalkDir(staticFiles, "static", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := staticFiles.ReadFile(p)
		sum := sha256.Sum256(b)
		out[strings.TrimPrefix(p, "static/")] = hex.EncodeToString(sum[:6])
		return err
	})
	return out
}

// asset is the address of a static file.
func asset(name string) string { return "/static/" + name + "?v=" + digests[name] }

const bundleFile = "dist/app.js"

// bundle is the address of the script, "" where it was not built.
var bundle = func() string {
	if digests[bundleFile] == "" {
		return ""
	}
	return asset(bundleFile)
}()

// static answers with an embedded file.
func static(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/static/")
	digest, ok := digests[name]
	if !ok || strings.HasPrefix(path.Base(name), ".") {
		http.NotFound(w, r)
		return
	}
	if r.URL.Query().Get("v") == digest {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.Header().Set("ETag", `"`+digest+`"`)
	http.ServeFileFS(w, r, staticFiles, "static/"+name)
}
