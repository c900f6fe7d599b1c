// SPDX-License-Identifier: Apache-2.0

package page

import (
	"embed"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/admitkit/admitkit/internal/textutil"
)

//go:embed page.html page.css
var files embed.FS

// parsed returns the template. It is parsed on first use, because most commands write no page.
var parsed = sync.OnceValue(func() *template.Template {
	functions := template.FuncMap{
		"lower": strings.ToLower,
		"text":  func(text string) string { return clip(textutil.Visible(text), longestValue) },
		"line":  func(text string) string { return clip(textutil.Visible(text), longLine) },
		"lines": linesOf,
		"value": valueOf,
		"facts": func(all []Fact) []Fact {
			return slices.DeleteFunc(slices.Clone(all), func(f Fact) bool { return f.Value == "" })
		},
		"sides": sides,
	}
	return template.Must(template.New("page.html").Funcs(functions).ParseFS(files, "page.html", "page.css"))
})

// Write writes the page as HTML. All text is escaped, so that it cannot add markup.
func (p Page) Write(w io.Writer) error { return parsed().Execute(w, newView(&p)) }
