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

//go:embed style.css
var styleText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"sentence": sentence}).Parse(pageText))

// HTML writes the report as one page that needs no network and no scripts.
func (d *Data) HTML(w io.Writer) error {
	v := d.view()
	v.Style = template.CSS(styleText)
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		return fmt.Errorf("write report as HTML: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}
