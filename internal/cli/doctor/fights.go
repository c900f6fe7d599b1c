// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"io"
	"time"

	"github.com/admitkit/admitkit/internal/cli/audit"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/doctor"
)

// fightsIn returns the webhooks that undo each other's changes in audit logs.
func fightsIn(ctx context.Context, stdin io.Reader, logs []string, progress *screen.Progress) ([]doctor.Fight, error) {
	if len(logs) == 0 {
		return nil, nil
	}
	sources, err := audit.Sources(logs, stdin)
	if err != nil {
		return nil, err
	}
	const defaultAgain = 5 // of "admitkit audit"
	report, err := audit.Run(ctx, sources, audit.Options{Top: 100, Slow: time.Second, Again: defaultAgain}, func(read, all int64, events int) {
		progress.Part(read, all, "%d MB of audit logs, %d events", read>>20, events)
	})
	if err != nil {
		return nil, err
	}
	var fights []doctor.Fight
	for _, f := range report.Findings {
		if f.Rule != audit.PingPong {
			continue
		}
		fight := doctor.Fight{Evidence: f.Summary}
		for _, w := range f.Webhooks {
			fight.Webhooks = append(fight.Webhooks, doctor.Caller{Object: doctor.Mutating + "/" + w.Configuration, Webhook: w.Webhook})
		}
		fights = append(fights, fight)
	}
	return fights, nil
}
