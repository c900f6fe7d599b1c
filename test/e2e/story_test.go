// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/admitkit/admitkit/internal/cli/audit"
	"github.com/admitkit/admitkit/internal/cli/cluster"
	doctorcli "github.com/admitkit/admitkit/internal/cli/doctor"
	replaycli "github.com/admitkit/admitkit/internal/cli/replay"
	"github.com/admitkit/admitkit/internal/cli/screen"
	"github.com/admitkit/admitkit/internal/devcert"
	"github.com/admitkit/admitkit/internal/problem"
	"github.com/admitkit/admitkit/pkg/record"
	"github.com/admitkit/admitkit/pkg/replay"
	"github.com/admitkit/admitkit/pkg/rollout"
	"github.com/admitkit/admitkit/pkg/webhook"
)

const (
	storyHook  = "digests.example.com"
	storyPage  = "../../docs/change-a-policy.md"
	storyTeams = 20
)

// The spec is the story of docs/change-a-policy.md, and checks the output that the page shows.
var _ = Describe("a policy", func() {
	It("goes from Shadow over Warn and 10 percent to Enforce, and meets recorded traffic and a broken certificate", func(ctx context.Context) {
		s := newStory(ctx)

		By("recording what the policy would deny")
		denied, warned := s.deploy(ctx, "shadow", 0)
		Expect(denied).To(BeEmpty())
		Expect(warned).To(BeEmpty())
		s.withheld(ctx, "shadow", 14)

		By("warning users while some teams correct their Pods")
		s.use(ctx, "mode: Warn")
		denied, warned = s.deploy(ctx, "warn", 10)
		Expect(denied).To(BeEmpty())
		Expect(warned).To(HaveLen(7))
		s.withheld(ctx, "warn", 7)

		By("enforcing for 10 percent of the namespaces")
		s.use(ctx, "mode: Warn, rules: [{percent: 10, mode: Enforce}]")
		denied, warned = s.deploy(ctx, "tenth", 10)
		Expect(len(denied) + len(warned)).To(Equal(7))
		Expect(len(denied)).To(BeNumerically("~", 1, 1), "%q", denied)
		tenth := denied
		s.use(ctx, "mode: Warn, rules: [{percent: 50, mode: Enforce}]")
		denied, warned = s.deploy(ctx, "half", 10)
		Expect(denied).To(ContainElements(tenth), "a namespace of the 10 percent is not among the 50 percent")
		Expect(denied).NotTo(BeEmpty())
		Expect(warned).NotTo(BeEmpty())
		s.withheld(ctx, "half", len(warned))

		By("enforcing for all namespaces")
		s.use(ctx, "mode: Enforce")
		denied, warned = s.deploy(ctx, "enforce", 10)
		Expect(denied).To(HaveLen(7))
		Expect(warned).To(BeEmpty())
		s.withheld(ctx, "enforce", 0)

		By("replaying the recorded calls against a second version")
		s.replay(ctx)

		By("finding the certificate that no longer fits")
		s.breakCertificate(ctx)
	})
})

// A story is a policy on its way through the modes.
type story struct {
	modes     string // the file of the modes
	reads     atomic.Int64
	recorder  *record.Recorder
	recording string // the folder of the recording
	began     int64  // the length of the audit log when the current stage began
}

func newStory(ctx context.Context) *story {
	GinkgoHelper()
	for i := range storyTeams {
		_, err := clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team(i), Labels: map[string]string{"story": "digests"}}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	s := &story{modes: filepath.Join(GinkgoT().TempDir(), "modes.yaml"), recording: GinkgoT().TempDir()}
	s.write("mode: Shadow")
	var err error
	s.recorder, err = record.New(record.Options{Dir: s.recording, MaxBytesPerSecond: -1})
	Expect(err).NotTo(HaveOccurred())
	modes, err := rollout.New(s.modes, rollout.Options{Interval: 20 * time.Millisecond, Logger: funcr.New(func(_, line string) {
		if strings.Contains(line, "were read") {
			s.reads.Add(1)
		}
	}, funcr.Options{})}, digests(false).WithObserver(s.recorder))
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	DeferCleanup(stop)
	go func() { _ = modes.Start(running) }()
	installWith(ctx, webhook.ConfigurationOptions{Name: "digests", URL: serve(modes.Hooks()...)}, modes.Hooks()...)
	return s
}

// digests returns the policy: images need a digest. Its second version also forbids the network of the node.
func digests(second bool) *webhook.Hook {
	return webhook.Validating(admissionregistrationv1.ValidatingWebhook{
		Name: storyHook, Rules: webhook.Rules(webhook.OnCreate("", "v1", "pods")),
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"story": "digests"}},
	}, func(_ context.Context, req *webhook.Request[corev1.Pod]) error {
		for _, c := range req.Object.Spec.Containers {
			if !strings.Contains(c.Image, "@sha256:") {
				return webhook.Deny("Pod " + req.Object.Name + ": the image " + c.Image + " has no digest")
			}
		}
		if second && req.Object.Spec.HostNetwork {
			return webhook.Deny("Pod " + req.Object.Name + " uses the network of its node")
		}
		return nil
	})
}

// team returns the name of a namespace.
func team(i int) string { return fmt.Sprintf("team-%02d", i+1) }

func (s *story) write(mode string) {
	GinkgoHelper()
	Expect(os.WriteFile(s.modes, []byte("hooks: [{webhook: "+storyHook+", "+mode+"}]"), 0o600)).To(Succeed())
}

// use writes modes and waits until the hook has them.
func (s *story) use(ctx context.Context, mode string) {
	GinkgoHelper()
	before := s.reads.Load()
	s.write(mode)
	Eventually(s.reads.Load, "20s", "10ms").WithContext(ctx).Should(BeNumerically(">", before))
}

// deploy creates a Pod for each team. Those of every third team and of the first few that have corrected them have
// digests. In the last stage, one Pod uses the network of its node. It returns the namespaces whose requests were denied, and those with warnings.
func (s *story) deploy(ctx context.Context, stage string, corrected int) (denied, warned []string) {
	GinkgoHelper()
	info, err := os.Stat(auditFile)
	Expect(err).NotTo(HaveOccurred())
	s.began = info.Size()
	for i := range storyTeams {
		object := pod(team(i), "web-"+stage)
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: uuid.NewUUID(), Controller: new(true)}}
		object.Spec.Containers[0].Image = "registry.example.com/web:v3"
		if i%3 == 2 || i < corrected {
			object.Spec.Containers[0].Image += "@sha256:" + strings.Repeat("0a", 32)
		}
		object.Spec.HostNetwork = stage == "enforce" && i == 2
		warnings := &warningLog{}
		listening := rest.CopyConfig(config)
		listening.WarningHandler = warnings
		_, err := kubernetes.NewForConfigOrDie(listening).CoreV1().Pods(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
		switch {
		case err != nil:
			Expect(err).To(MatchError(ContainSubstring("the image registry.example.com/web:v3 has no digest")))
			denied = append(denied, object.Namespace)
		case len(warnings.texts) > 0:
			Expect(warnings.texts[0]).To(ContainSubstring("will deny this request once it is enforced"))
			warned = append(warned, object.Namespace)
		}
	}
	return denied, warned
}

// withheld reads the audit log of the current stage with "admitkit audit". It waits until the report has this number of
// requests, because the API server writes an event after its response.
func (s *story) withheld(ctx context.Context, stage string, requests int) {
	GinkgoHelper()
	var report *audit.Report
	Eventually(func(g Gomega) {
		log, err := os.ReadFile(auditFile)
		g.Expect(err).NotTo(HaveOccurred())
		part := filepath.Join(GinkgoT().TempDir(), stage+".log")
		g.Expect(os.WriteFile(part, log[s.began:], 0o600)).To(Succeed())
		sources, err := audit.Sources([]string{part}, nil)
		g.Expect(err).NotTo(HaveOccurred())
		report, err = audit.Run(ctx, sources, audit.Options{Withheld: true, Webhooks: []string{storyHook}, Top: 2, Slow: time.Minute, Again: 3}, func(int64, int64, int) {})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(strings.Count(string(log[s.began:]), `"name":"web-`+stage)).To(BeNumerically(">=", storyTeams))
		got := 0
		for _, w := range report.Withheld {
			got += w.Requests
		}
		g.Expect(got).To(Equal(requests))
	}, "20s", "50ms").WithContext(ctx).Should(Succeed())
	var text strings.Builder
	Expect(report.WriteText(&text, screen.Painter{})).To(Succeed())
	shown(GinkgoTB(), "admitkit audit --withheld --top 2 "+stage+".log", text.String())
}

// replay sends the recorded calls to the second version, as a user does before it is rolled out, and in a test.
func (s *story) replay(ctx context.Context) {
	GinkgoHelper()
	Expect(s.recorder.Close(ctx)).To(Succeed())
	Expect(s.recorder.Stats().Recorded).To(BeEquivalentTo(5 * storyTeams))
	bundle := filepath.Join(GinkgoT().TempDir(), "ca.crt")
	Expect(os.WriteFile(bundle, ca.Bundle, 0o600)).To(Succeed())
	quiet := &screen.Screen{Err: GinkgoWriter, Getenv: os.Getenv}
	versions := replaycli.Options{Files: []string{s.recording}, CAFile: bundle, Workers: 4, Timeout: 10 * time.Second}

	versions.URL = serve(digests(false))
	report, err := replaycli.Run(ctx, quiet, versions)
	Expect(err).NotTo(HaveOccurred())
	Expect(report.Err()).NotTo(HaveOccurred())
	Expect(report.Verdict()).To(Equal("Nothing changes for 100 calls."))

	versions.URL = serve(digests(true))
	report, err = replaycli.Run(ctx, quiet, versions)
	Expect(err).NotTo(HaveOccurred())
	Expect(report.Err()).To(MatchError(problem.ErrFound))
	var text strings.Builder
	Expect(report.Write("text", &text, screen.Painter{})).To(Succeed())
	shown(GinkgoTB(), "admitkit replay recordings --url https://127.0.0.1:9443 --ca-file ca.crt", strings.ReplaceAll(text.String(), s.recording, "recordings"))

	if *update {
		return // Check would accept the changes
	}
	inCI := &failures{}
	replay.Check(inCI, digests(false), s.recording)
	Expect(inCI.text).To(BeEmpty())
	replay.Check(inCI, digests(true), s.recording)
	Expect(inCI.text).To(ContainSubstring("1 of 100 calls changed: 1 decision."))
}

// failures records the failures of a test, as testing.T does.
type failures struct{ text string }

func (*failures) Helper()                             {}
func (*failures) Context() context.Context            { return context.Background() }
func (f *failures) Errorf(format string, args ...any) { f.text += fmt.Sprintf(format, args...) }
func (f *failures) Fatalf(format string, args ...any) { f.Errorf(format, args...) }
func (*failures) Logf(string, ...any)                 {}

// breakCertificate replaces the caBundle of the policy with that of another CA, and asks "admitkit doctor" what is wrong.
func (s *story) breakCertificate(ctx context.Context) {
	GinkgoHelper()
	other, err := devcert.NewCA()
	Expect(err).NotTo(HaveOccurred())
	api := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	configuration, err := api.Get(ctx, "digests", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	configuration.Webhooks[0].ClientConfig.CABundle = other.Bundle
	_, err = api.Update(ctx, configuration, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())

	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, server.Kubeconfig, 0o600)).To(Succeed())
	report, err := doctorcli.Run(ctx, &screen.Screen{Err: GinkgoWriter, Getenv: os.Getenv}, doctorcli.Options{
		Flags: cluster.Flags{Kubeconfig: kubeconfig}, FailOn: "error", ExpiresWithin: time.Hour,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(report.Failed()).To(BeTrue())
	var text strings.Builder
	Expect(report.Write("text", &text, screen.Painter{})).To(Succeed())
	findings, _, _ := strings.Cut(text.String(), "\nCALLS ") // the calls of all specs
	shown(GinkgoTB(), "admitkit doctor", findings+"\n...")
}

var varying = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|[0-9a-f]{8}-[0-9a-f-]{27}|127\.0\.0\.1:\d+|key [0-9a-f]{8}| +[0-9.]+ ms|admitkit-[0-9TZ.-]+\S*\.gz|\d+ events, \d+ requests`)

var update = flag.Bool("update", false, "write the output into "+storyPage)

// shown fails the test if the page does not show the output of the command. Times, ports and IDs may differ.
func shown(t testingTB, command, output string) {
	t.Helper()
	page, err := os.ReadFile(storyPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(page), "```console\n$ "+command+"\n")
	block, tail, ended := strings.Cut(rest, "```\n")
	output = strings.Trim(output, "\n") + "\n"
	switch {
	case !found || !ended:
		t.Errorf("%s has no block of %q", storyPage, command)
	case *update:
		if err := os.WriteFile(storyPage, []byte(head+"```console\n$ "+command+"\n"+output+"```\n"+tail), 0o600); err != nil {
			t.Fatal(err)
		}
	case varying.ReplaceAllString(block, "…") != varying.ReplaceAllString(output, "…"):
		t.Errorf("%s does not show the output of %q: run the spec with -update\n%s", storyPage, command, output)
	}
}

// testingTB has the methods of testing.TB that shown needs.
type testingTB interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}
