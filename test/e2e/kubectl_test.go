// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
)

// kubectl runs the real kubectl and returns its output.
func kubectl(ctx context.Context, stdin []byte, args ...string) (stdout, stderr string, err error) {
	GinkgoHelper()
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, server.Kubeconfig, 0o600)).To(Succeed())
	cmd := server.Kubectl(ctx, kubeconfig, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// manifest encodes an object for kubectl. Typed objects do not contain their kind, so the caller
// gives it.
func manifest(apiVersion, kind string, object runtime.Object) []byte {
	GinkgoHelper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	fields["apiVersion"], fields["kind"] = apiVersion, kind
	encoded, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	return encoded
}
