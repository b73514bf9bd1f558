// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

//go:embed page_parts.html
var pagePartsText string

//go:embed style.css
var styleText string

var pageTemplate = parsePage(pageText)

// parsePage makes a page's template, which may use the parts of all pages.
func parsePage(text string) *template.Template {
	page := template.New("page").Funcs(template.FuncMap{"sentence": sentence})
	return template.Must(template.Must(page.Parse(pagePartsText)).Parse(text))
}

// writePage fills a page's template, and writes the page whole or not at all.
func writePage(w io.Writer, page *template.Template, view any) error {
	var b bytes.Buffer
	if err := page.Execute(&b, view); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// HTML writes the report as one page that needs no network and no scripts.
func (d *Data) HTML(w io.Writer) error {
	v := d.view()
	v.Style = template.CSS(styleText)
	return writePage(w, pageTemplate, v)
}
