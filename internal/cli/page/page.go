// SPDX-License-Identifier: Apache-2.0

package page

import (
	"embed"
	"html/template"
	"io"
	"strings"
	"sync"
)

//go:embed page.html page.css
var files embed.FS

// parsed is the template, made when it is first needed: most commands write no page.
var parsed = sync.OnceValue(func() *template.Template {
	functions := template.FuncMap{
		"lower": strings.ToLower,
		"side": func(title string, lines []line) any {
			return struct {
				Title string
				Lines []line
			}{title, lines}
		},
	}
	return template.Must(template.New("page.html").Funcs(functions).ParseFS(files, "page.html", "page.css"))
})

// Write writes the page. Texts are escaped for where they stand, so there is no markup in the
// page but its own.
func (p Page) Write(w io.Writer) error { return parsed().Execute(w, newView(&p)) }
