// SPDX-License-Identifier: Apache-2.0

// Package record records the calls of webhooks in files, without their secrets, and reads these files. With them, a new
// version of a webhook can be compared with the old one on real requests.
//
// A [Recorder] is an observer of hooks, and its Handler records the calls of any other http.Handler:
//
//	recorder, err := record.New(record.Options{Dir: "/var/lib/recordings"})
//	server := webhook.NewServer(webhook.Options{Observers: []webhook.Observer{recorder}, …}, hooks...)
//	err = server.Start(ctx)
//	err = recorder.Close(context.Background())
//
// A recorder never delays or fails a call. If its disk is slow or full, it drops records and counts them. Its memory and
// its files are bounded.
//
// # Files
//
// A file has one JSON object per line, compressed with gzip: a [Call]. The member "format" of each line is [Format].
// "request" is the AdmissionReview of the API server, and "answer" the answer of the webhook, in which the patch is JSON
// instead of base64. Names of files begin with "admitkit-" and the time in UTC, so they sort by age.
//
// # Secrets
//
// Secrets are replaced by pseudonyms of the same shape, so that objects stay valid. Equal values have equal pseudonyms.
// Secrets are: the data of Secrets and ConfigMaps, the values of environment variables, userInfo.extra, the values of
// fields, variables, headers and flags whose names are those of credentials, the user information of URLs, private keys,
// tokens, the fields in [Options.SecretPaths], and documents inside strings, such as the annotation
// last-applied-configuration. Copies of such values in messages and patches are replaced as well. Headers of HTTP are
// not recorded.
package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/admitkit/admitkit/internal/redact"
)

// Format is the format of the files that this package writes and reads.
const Format = formatName + "1"

const formatName = "admitkit-record/"

// Options configure [New]. Only Dir is required. A limit of zero is the default, and a negative limit is no limit.
type Options struct {
	// Dir is the folder for the files. New creates it. Only the owner can read it and its files.
	Dir string

	// Rate is the share of the calls that are recorded, from 0 to 1. Zero means 1, all calls. With a negative rate, only
	// novel calls are recorded.
	Rate float64
	// MaxBytesPerSecond limits the rate of recorded requests and answers, in bytes, and so the CPU time of the recorder.
	// The default is 64 KiB, about 100,000 usual calls per hour. The limit does not apply to novel calls.
	MaxBytesPerSecond int64
	// Novel is the number of calls that are always recorded for each combination of webhook, path, kind, operation,
	// outcome, code and patch paths. The default is 3, and a negative number means none. At most 10,000 combinations are
	// remembered. They are forgotten when a file is deleted or cannot be written.
	Novel int

	// MaxFileBytes is the size of a file after which a new one begins. The default is 64 MiB.
	MaxFileBytes int64
	// MaxFileAge is the age of a file after which a new one begins. The default is 24 hours.
	MaxFileAge time.Duration
	// MaxFiles is the number of files in Dir. When the first records of a new file are on the disk, the oldest files are
	// deleted. The default is 10.
	MaxFiles int
	// MaxQueueBytes limits the memory for calls that are not written yet. When the queue is full, records are dropped.
	// The default is 16 MiB.
	MaxQueueBytes int64

	// KeyFile is a file with the key of the pseudonyms. If it does not exist, New writes a random key to it. Recorders
	// with the same key use the same pseudonyms. Anyone who has the key can find short secrets by trying all values, so
	// do not keep it with the recordings. If KeyFile is empty, the recorder has a random key of its own.
	KeyFile string
	// SecretPaths are further fields of objects whose values are secret, such as "spec.users[*].pin" or
	// "metadata.annotations[example.com/pin]". An asterisk stands for any name or index.
	SecretPaths []string
	// Unredacted records secrets as they are.
	Unredacted bool

	// Logger reports dropped records and disk errors, at most once per minute. The zero value logs nothing.
	Logger logr.Logger
}

// The values that zero stands for in Options.
const (
	defaultBytesPerSecond = 64 << 10
	defaultNovel          = 3
	defaultFileBytes      = 64 << 20
	defaultFileAge        = 24 * time.Hour
	defaultFiles          = 10
	defaultQueueBytes     = 16 << 20
)

// limit returns the limit for an option: the default for zero, and the highest number for a negative one.
func limit[T ~int | ~int64](option, standard T) T {
	switch {
	case option == 0:
		return standard
	case option < 0:
		return math.MaxInt
	}
	return option
}

// New starts a recorder. It returns an error if an option is invalid, or if it cannot write to Dir. Close stops the
// recorder.
func New(o Options) (*Recorder, error) {
	redactor, keyID, err := o.redactor()
	switch {
	case err != nil:
		return nil, fmt.Errorf("record: %w", err)
	case o.Dir == "":
		return nil, errors.New("record: Options.Dir is empty: want a folder for the files")
	case o.Rate > 1:
		return nil, fmt.Errorf("record: Options.Rate is %v: want a share from 0 to 1", o.Rate)
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("record: cannot create the folder for the files: %w", err)
	}
	if err := writable(o.Dir); err != nil {
		return nil, fmt.Errorf("record: cannot write to the folder for the files: %w", err)
	}
	r := newRecorder(o, redactor, keyID)
	r.start()
	return r, nil
}

// redactor returns the redactor and the name of its key.
func (o *Options) redactor() (*redact.Redactor, string, error) {
	if o.Unredacted {
		return redact.Off(), "", nil
	}
	key := redact.NewKey()
	if o.KeyFile != "" {
		var err error
		if key, err = redact.KeyFile(o.KeyFile); err != nil {
			return nil, "", fmt.Errorf("Options.KeyFile: %w", err)
		}
	}
	redactor, err := redact.New(key, o.SecretPaths)
	if err != nil {
		return nil, "", fmt.Errorf("Options.SecretPaths: %w", err)
	}
	return redactor, key.ID(), nil
}

// writable returns an error if no file can be created in a folder.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".test-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
