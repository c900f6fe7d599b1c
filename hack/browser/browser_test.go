// SPDX-License-Identifier: Apache-2.0

// Package browser tests the HTML report in a real browser: visibility, layout on a phone, and operation by
// keyboard.
package browser

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/admitkit/admitkit/internal/cli/page"
	"github.com/admitkit/admitkit/pkg/idempotence"
	"github.com/admitkit/admitkit/test/corpus"
)

// chrome is the browser that all tests share. Each test opens its own tabs.
var chrome context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	find := exec.Command("../debian.sh", "chromium", "chromium")
	find.Stderr = os.Stderr
	program, err := find.Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests need Chromium:", err)
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(strings.TrimSpace(string(program))), chromedp.Flag("headless", "new"),
		chromedp.NoSandbox) // Chrome does not run as root otherwise, and all pages are from these tests
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	var closeBrowser context.CancelFunc
	chrome, closeBrowser = chromedp.NewContext(allocator)
	defer closeBrowser()
	if err := chromedp.Do(chrome); err != nil {
		fmt.Fprintln(os.Stderr, "Chromium does not start:", err)
		return 1
	}
	return m.Run()
}

// A tab shows a page. The page cannot run scripts, but tests can.
type tab struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex
	requests []string
}

func open(t *testing.T, file string, width, height int64, scheme string) *tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(chrome)
	t.Cleanup(stop)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.requests = append(b.requests, e.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	b.do(chromedp.EmulateViewport(width, height), chromedp.Navigate("file://"+file))
	return b
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	result, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func ask[T any](b *tab, script string) T {
	b.t.Helper()
	answer, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatal(err)
	}
	return answer
}

// shot saves a screenshot of the whole page in the folder ADMITKIT_SCREENSHOTS, if it is set.
func (b *tab) shot(name string) {
	folder := os.Getenv("ADMITKIT_SCREENSHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func write(t *testing.T, p page.Page) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "report.html")
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

var once struct {
	sync.Once
	page.Page
	err error
}

// broken returns the report on webhooks that fail laws. All tests share it.
func broken(t *testing.T) page.Page {
	t.Helper()
	once.Do(func() { once.Page, once.err = judge(t.Context()) })
	if once.err != nil {
		t.Fatal(once.err)
	}
	return once.Page
}

func judge(ctx context.Context) (page.Page, error) {
	var subjects []idempotence.Subject
	for _, c := range corpus.Patterns() {
		if strings.HasPrefix(c.Name, "P01") {
			subjects = append(subjects, idempotence.Handler(c.Webhook, c.New))
		}
	}
	report, err := idempotence.Run(ctx, idempotence.Together(subjects...), idempotence.Options{Objects: 6})
	if err != nil {
		return page.Page{}, err
	}
	return page.FromVerify(report), nil
}

// hostile returns a page with long texts, and with scripts and markup as texts.
func hostile() page.Page {
	long := strings.Repeat("x", 3000)
	tag := `</style></script><script>document.title="run"</script><img src=http://127.0.0.1:9/x onerror=alert(1)>`
	p := page.Page{Title: long + tag, Status: page.Failed, Summary: tag + long, Notes: []string{long, tag}}
	p.Facts = []page.Fact{{Name: long, Value: long}, {Name: tag, Value: tag}}
	wide := page.Table{Title: long}
	var row []page.Cell
	for range 12 {
		wide.Columns = append(wide.Columns, page.Column{Name: "a column"})
		row = append(row, page.Cell{Text: "unbroken-" + long[:100]})
	}
	wide.Rows = [][]page.Cell{row}
	p.Tables = []page.Table{wide}
	for _, law := range []string{long, tag, "L1"} {
		p.Findings = append(p.Findings, page.Finding{
			ID: law, Law: law, Webhooks: []string{law, "both"}, Kind: law, Title: law, Summary: law, Cause: law, Fix: law, Again: law,
			Badge: long[:60], Changes: &page.Changes{From: long, To: tag, List: []page.Change{{Path: long, Old: long, New: tag}}},
			Steps: []page.Step{{
				Title: law, Who: law, Outcome: law, Facts: []page.Fact{{Name: law, Value: law}}, Text: law,
				Patch: []page.Operation{{Text: law, Offending: true}}, Diff: &page.Diff{Before: "a: " + law, After: "a: " + long + "\nb: 1"},
			}},
		})
	}
	return p
}

func TestPageSendsNoRequestsAndRunsNoScripts(t *testing.T) {
	for name, p := range map[string]page.Page{"real": broken(t), "hostile": hostile()} {
		file := write(t, p)
		b := open(t, file, 1200, 900, "light")
		if len(b.requests) != 1 || b.requests[0] != "file://"+file {
			t.Errorf("%s: requests: %.300q", name, b.requests)
		}
		if n := ask[int](b, `document.querySelectorAll("script, img, link, iframe, object, [onerror]").length`); n != 0 {
			t.Errorf("%s: %d elements that the template does not have", name, n)
		}
		if title := ask[string](b, `document.title`); title == "run" {
			t.Errorf("%s: a script in a text has run", name)
		}
	}
}

func TestFiltersSelectFindings(t *testing.T) {
	p := broken(t)
	b := open(t, write(t, p), 1200, 900, "light")
	visible := `[...document.querySelectorAll(".finding")].filter(f => f.checkVisibility()).length`
	if got := ask[int](b, visible); got != len(p.Findings) || got < 3 {
		t.Fatalf("the page shows %d findings of %d", got, len(p.Findings))
	}
	count := func(law, webhook string) (n int) {
		for _, f := range p.Findings {
			of := webhook == ""
			for _, w := range f.Webhooks {
				of = of || w == webhook
			}
			if of && (law == "" || f.Law == law) {
				n++
			}
		}
		return n
	}
	laws := ask[[]string](b, `[...document.querySelectorAll("[name=law]")].map(i => i.parentNode.innerText.trim().replace(/ *\(\d[^)]*\)$/, ""))`)
	hooks := ask[[]string](b, `[...document.querySelectorAll("[name=hook]")].map(i => i.parentNode.innerText.trim().replace(/ *\(\d[^)]*\)$/, ""))`)
	if len(laws) < 3 || len(hooks) < 3 {
		t.Fatalf("the filters are %q and %q", laws, hooks)
	}
	laws[0], hooks[0] = "", ""
	for l := range laws {
		for h := range hooks {
			b.do(chromedp.Click(id("law", l)), chromedp.Click(id("hook", h)))
			want := count(laws[l], hooks[h])
			if got := ask[int](b, visible); got != want {
				t.Errorf("law %q, webhook %q: %d findings are shown, want %d", laws[l], hooks[h], got, want)
			}
			if got := ask[bool](b, `document.querySelector(".nothing").checkVisibility()`); got != (want == 0) {
				t.Errorf("law %q, webhook %q: the note for no findings is visible: %v", laws[l], hooks[h], got)
			}
		}
	}
	// A link to a finding works even if the filters hide the finding.
	b.do(chromedp.Click(id("law", len(laws)-1)), chromedp.Click(id("hook", 0)), chromedp.Click(chromedp.CSS(`td a[href="#finding-1"]`)))
	if !ask[bool](b, `document.querySelector("#finding-1").checkVisibility()`) {
		t.Error("the finding is hidden after a click on its link")
	}
}

func id(name string, n int) chromedp.CSS { return chromedp.CSS(fmt.Sprintf("#%s-%d", name, n)) }

func TestPageFitsOnAPhone(t *testing.T) {
	for name, p := range map[string]page.Page{"real": broken(t), "hostile": hostile()} {
		file := write(t, p)
		for _, scheme := range []string{"light", "dark"} {
			b := open(t, file, 360, 740, scheme)
			for _, state := range []string{"as it comes", "unfolded"} {
				if got := ask[int](b, `document.documentElement.scrollWidth`); got != 360 {
					t.Errorf("%s, %s: the page is %d wide, want 360; too wide: %s", name, state, got, ask[string](b, tooWide))
				}
				b.shot(name + "-phone-" + scheme + "-" + strings.ReplaceAll(state, " ", "-"))
				ask[int](b, `document.querySelectorAll("details").forEach(d => d.open = true), 0`)
			}
		}
	}
}

// TestTablesAreNotCutOff checks that no table of a report needs a horizontal scroll bar, on a phone or on a desktop.
func TestTablesAreNotCutOff(t *testing.T) {
	file := write(t, broken(t))
	for _, width := range []int64{390, 1280} {
		b := open(t, file, width, 844, "light")
		ask[int](b, `document.querySelectorAll("details").forEach(d => d.open = true), 0`)
		if n := ask[int](b, `document.querySelectorAll("table").length`); n < 2 {
			t.Errorf("the report has only %d tables", n)
		}
		cut := ask[[]string](b, `[...document.querySelectorAll(".scroll:has(table)")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.innerText.slice(0, 60))`)
		if len(cut) > 0 {
			t.Errorf("at a width of %d, tables are cut off: %q", width, cut)
		}
		b.shot(fmt.Sprintf("real-%d", width))
	}
}

const tooWide = `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > 361 && !e.parentNode.closest(".scroll"))
	.map(e => e.tagName + "." + e.className).slice(0, 8).join(" ")`

func TestBeforeAndAfterAreSideBySideOnWideScreens(t *testing.T) {
	file := write(t, broken(t))
	for width, beside := range map[int64]bool{1200: true, 360: false} {
		b := open(t, file, width, 900, "light")
		ask[int](b, `document.querySelectorAll("details").forEach(d => d.open = true), 0`)
		b.shot("real-" + map[bool]string{true: "desktop", false: "phone"}[beside] + "-unfolded")
		got := ask[bool](b, `(() => { const [a, b] = document.querySelectorAll(".diff figure"); return a.getBoundingClientRect().top === b.getBoundingClientRect().top })()`)
		if got != beside {
			t.Errorf("at a width of %d, before and after are side by side: %v", width, got)
		}
		if !beside {
			continue
		}
		// Corresponding lines of both sides are at the same height.
		if n := ask[int](b, `[...document.querySelectorAll(".diff")].filter(d => {
			const [a, b] = [...d.querySelectorAll("pre")].map(p => [...p.querySelectorAll(".line")].map(l => Math.round(l.getBoundingClientRect().top)));
			return a.join() !== b.join() }).length`); n != 0 {
			t.Errorf("the lines of %d diffs are not aligned", n)
		}
	}
}

func TestContrastMeetsWCAG(t *testing.T) {
	file := write(t, broken(t))
	for _, scheme := range []string{"light", "dark"} {
		b := open(t, file, 1200, 900, scheme)
		ask[int](b, `document.querySelectorAll("details").forEach(d => d.open = true), 0`)
		b.shot("real-desktop-" + scheme)
		for _, low := range ask[[]string](b, contrasts) {
			t.Errorf("%s: %s", scheme, low)
		}
		if n := ask[int](b, `window.looked`); n < 100 {
			t.Errorf("%s: the test checked only %d texts", scheme, n)
		}
	}
}

// contrasts lists the texts with less contrast than WCAG 2.2 AA requires (4.5).
const contrasts = `(() => {
	const parse = c => c.match(/[\d.]+/g).map(Number);
	const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126*r + .7152*g + .0722*b };
	const ground = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c.slice(0, 3) } return [255, 255, 255] };
	const low = new Set(); window.looked = 0;
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; n = walker.nextNode();) {
		const e = n.parentElement;
		if (!n.data.trim() || !e.checkVisibility()) continue;
		window.looked++;
		const [a, b] = [light(parse(getComputedStyle(e).color).slice(0, 3)), light(ground(e))].sort((x, y) => y - x);
		if ((a + .05) / (b + .05) < 4.5) low.add(e.tagName + "." + e.className + " in ." + e.parentElement.className + ": " + ((a + .05) / (b + .05)).toFixed(2));
	}
	return [...low].slice(0, 10);
})()`

func TestPageWorksByKeyboard(t *testing.T) {
	b := open(t, write(t, broken(t)), 1200, 900, "light")
	where := `document.activeElement.id || document.activeElement.className || document.activeElement.tagName`
	var path []string
	for range 40 {
		b.do(chromedp.KeyEvent(kb.Tab))
		path = append(path, ask[string](b, where))
		if path[len(path)-1] == "law-0" {
			break
		}
	}
	if path[0] != "skip" || path[len(path)-1] != "law-0" {
		t.Fatalf("Tab moves the focus through %q", path)
	}
	if !ask[bool](b, `getComputedStyle(document.activeElement.parentNode).outlineStyle === "solid"`) {
		t.Error("the focus is not visible")
	}
	before := ask[int](b, `[...document.querySelectorAll(".finding")].filter(f => f.checkVisibility()).length`)
	b.do(chromedp.KeyEvent(kb.ArrowRight))
	if after := ask[int](b, `[...document.querySelectorAll(".finding")].filter(f => f.checkVisibility()).length`); after == 0 || after >= before {
		t.Errorf("after an arrow key on the filter, the page shows %d of %d findings", after, before)
	}
}

func TestAccessibilityTreeHasNamesAndHeadings(t *testing.T) {
	b := open(t, write(t, broken(t)), 1200, 900, "light")
	nodes := call(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
	named := map[string]int{}
	for _, n := range nodes {
		role := ""
		if n.Role != nil {
			role = strings.Trim(string(n.Role.Value), `"`)
		}
		switch role {
		case "radio", "heading", "region", "article", "link", "form", "group", "RootWebArea":
			if n.Name == nil || len(strings.Trim(string(n.Name.Value), `"`)) == 0 {
				if role == "group" { // this is a details element, which has the name of its summary
					continue
				}
				t.Errorf("a %s has no name", role)
			}
			named[role]++
		}
	}
	for _, role := range []string{"radio", "heading", "region", "article", "link", "form", "RootWebArea"} {
		if named[role] == 0 {
			t.Errorf("the page has no %s: %v", role, named)
		}
	}
	levels := ask[[]int](b, `[...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].map(h => +h.tagName[1])`)
	for i, level := range levels {
		if i == 0 && level != 1 || i > 0 && level > levels[i-1]+1 {
			t.Errorf("the headings skip a level: %v", levels)
			break
		}
	}
}
