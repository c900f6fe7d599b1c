// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// writeArchive writes the tool and the documents that belong to it. Names, order, times and owners do not depend on
// this machine.
func (r *release) writeArchive(file, binary string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	compressed, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, source := range []string{binary, filepath.Join(r.root, "CHANGELOG.md"), filepath.Join(r.root, "LICENSE"), filepath.Join(r.root, "README.md")} {
		mode := int64(0o644)
		if source == binary {
			mode = 0o755
		}
		if err := r.add(archive, source, mode); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func (r *release) add(archive *tar.Writer, source string, mode int64) error {
	f, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := tar.Header{Name: filepath.Base(source), Mode: mode, Size: info.Size(), ModTime: r.committed, Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(&header); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}

// writeChecksums writes checksums.txt in the format of sha256sum.
func writeChecksums(dir string, names []string) error {
	var lines strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		lines.WriteString(hex.EncodeToString(sum[:]) + "  " + name + "\n")
	}
	return os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(lines.String()), 0o644)
}
