// Package web is the UI of analyze serve: pages of HTML made on the server from the
// answers of an [api.Source], charts as SVG, which work without any script. What is
// bundled from web/ts into static/dist makes them quicker to use; without the bundle
// everything compiles and the pages are plain. The URL is the only state (package query).
// There is no store here, no authentication (the context says what a viewer may see:
// api.WithTenants) and no figure is computed that package metrics does not define.
package web
