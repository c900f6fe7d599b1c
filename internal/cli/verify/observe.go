// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"time"

	"github.com/admitkit/admitkit/internal/problem"
)

// observer returns a function that runs the command of --observe and returns its output. The output must not change
// during a dry run.
func (r *runner) observer(ctx context.Context) func() any {
	return func() any {
		if ctx.Err() != nil {
			return nil
		}
		var out, complaints bytes.Buffer
		command := exec.CommandContext(ctx, "sh", "-c", r.Observe)
		command.Stdout, command.Stderr = &out, &complaints
		command.WaitDelay = time.Second // limits the wait for processes that the command leaves behind
		inGroup(command)
		if err := command.Run(); err != nil && ctx.Err() == nil {
			said := strings.TrimSpace(complaints.String())
			if said != "" {
				said = ": " + said
			}
			r.fail(problem.New("--observe: %q failed: %w%s", r.Observe, err, said))
		}
		return out.String()
	}
}
