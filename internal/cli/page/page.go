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

// parsed returns the template. It is parsed on first use, because most commands write no page.
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

// Write writes the page as HTML. All text is escaped, so that it cannot add markup.
func (p Page) Write(w io.Writer) error { return parsed().Execute(w, newView(&p)) }
