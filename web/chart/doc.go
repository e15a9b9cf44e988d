// Package chart draws SVG: lines over time, bars, the waterfall of an operation. What it
// returns is safe to put into a page: it escapes every text itself and uses attributes and
// classes only, which a strict Content-Security-Policy allows. It knows no figure and no page.
package chart
