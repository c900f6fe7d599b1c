// SPDX-License-Identifier: Apache-2.0

// Demo runs the hooks of both examples with a real kube-apiserver and shows with kubectl what they do. Each story is a
// few kubectl commands. The demo exits with 0 only if every story has the expected result. Run it at the root of the
// repository, because its manifests are in hack/demo.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// timeout limits the whole demo. The stories take seconds, but an API server may start slowly.
const timeout = 3 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, &screen{w: os.Stdout, colour: wantsColour(os.Stdout)})
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s *screen) error {
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not finished after %s", timeout))
	defer cancel()
	err := play(limited, s)
	if cause := context.Cause(limited); cause != nil {
		return errors.Join(cause, err)
	}
	return err
}

// play starts the API server and the hooks, prints the stories, and cleans up, even after a failure.
func play(ctx context.Context, s *screen) (err error) {
	d, err := start(ctx, s)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := d.stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("cleaning up: %w", stopErr))
			return
		}
		s.progress("Cleaned up: the hooks and the API server are gone, and so are their files.")
	}()
	for i, story := range stories {
		s.title(fmt.Sprintf("%d. %s", i+1, story.title))
		if err := story.tell(ctx, d); err != nil {
			return fmt.Errorf("story %d, %q, failed: %w", i+1, story.title, err)
		}
	}
	s.progress("\nAll %d stories passed.", len(stories))
	return nil
}
