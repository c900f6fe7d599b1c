// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"runtime/debug"
	"testing"
)

func TestPublishedVersion(t *testing.T) {
	main := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: admitkitModule, Version: version}, Settings: settings}
	}
	tool := func(m debug.Module) *debug.BuildInfo {
		m.Path = admitkitModule
		return &debug.BuildInfo{Main: debug.Module{Path: "example.com/shop", Version: "v1.0.0"}, Deps: []*debug.Module{&m}}
	}
	checkout := debug.BuildSetting{Key: "vcs", Value: "git"}
	const pseudo = "v0.0.0-20261123120000-0123456789ab"
	for name, row := range map[string]struct {
		info      *debug.BuildInfo
		published bool
	}{
		"go install of a release":            {main("v0.1.0"), true},
		"go install of a release candidate":  {main("v0.1.0-rc.1"), true},
		"go install of a commit":             {main(pseudo), true},
		"a release pipeline":                 {main("v0.1.0", checkout), true},
		"a tagged checkout with changes":     {main("v0.1.0+dirty", checkout), false},
		"an untagged checkout":               {main(pseudo, checkout), false},
		"an untagged checkout with changes":  {main(pseudo+"+dirty", checkout), false},
		"a checkout without version control": {main("(devel)"), false},
		"a tool of a project":                {tool(debug.Module{Version: "v0.1.0"}), true},
		"a tool of a project at a commit":    {tool(debug.Module{Version: pseudo}), true},
		"a tool from a folder":               {tool(debug.Module{Version: "v0.1.0", Replace: &debug.Module{Path: "../admitkit"}}), false},
		"another program":                    {&debug.BuildInfo{Main: debug.Module{Path: "example.com/shop", Version: "v1.0.0"}}, false},
	} {
		if version, published := publishedVersion(row.info); published != row.published {
			t.Errorf("%s: %s is published: %t", name, version, published)
		}
	}
}
