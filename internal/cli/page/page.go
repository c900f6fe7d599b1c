// SPDX-License-Identifier: Apache-2.0

package page

import (
	_ "embed"
	"html/template"
	"io"
	"sync"
)

//go:embed page.html
var source string

var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page").Parse(source))
})

// Write writes the page.
func (p Page) Write(w io.Writer) error { return parsed().Execute(w, p) }
